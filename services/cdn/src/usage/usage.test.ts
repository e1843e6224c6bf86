import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Bus, type OutgoingMessage } from '@millrace/bus';
import { type PlaybackUsageMessage } from '@millrace/contract';
import { createMetrics, silentLogger } from '@millrace/platform';
import { createManualClock } from '@millrace/testing';
import { type VerifiedToken } from '../tokens.ts';
import { SegmentSet } from './segment-set.ts';
import { createUsageMeter, type Watched } from './usage-meter.ts';
import { createUsagePublisher } from './usage-publisher.ts';

const clock = createManualClock();
const tokenOf = (text: string): VerifiedToken => ({
  text,
  claims: { kind: 'playback', videoId: 'vid_1', domain: 'a.example', expiresAt: new Date(0) },
  expiresAtMs: 0,
  query: `?token=${text}`,
});
const watched = (more: Partial<Watched> = {}): Watched => ({
  ...{ token: tokenOf('T'), ip: '1.1.1.1', accountId: 'acc_1', segment: 0, ms: 6000, bytes: 1001 },
  ...more,
});
const segments = (meter: ReturnType<typeof createUsageMeter>) =>
  [...meter.take().values()].flat().flatMap((view) => view.segments.map(({ index }) => index));

describe('the usage meter', () => {
  it.each([
    ['half of the bytes, rounded up', [501], true],
    ['one byte less', [500], false],
    ['ranges that make half together', [200, 200, 101], true],
    ['ranges that do not', [200, 200, 100], false],
  ])('%s [MET-006]', (_title, sent, counts) => {
    const meter = createUsageMeter(clock, 1e6);
    for (const bytes of sent) meter.sent(watched(), bytes);
    expect(segments(meter)).toEqual(counts ? [0] : []);
  });

  it('counts a segment once per token and address, in whatever quality [MET-005]', () => {
    const meter = createUsageMeter(clock, 1e6);
    meter.sent(watched(), 1001);
    meter.sent(watched({ bytes: 50_000 }), 50_000);
    expect(segments(meter)).toEqual([0]);
    meter.sent(watched(), 1001);
    expect(segments(meter)).toEqual([]);
    meter.sent(watched({ ip: '2.2.2.2' }), 1001);
    meter.sent(watched({ token: tokenOf('U') }), 1001);
    meter.sent(watched({ segment: 1 }), 1001);
    const views = meter.take().get('acc_1') ?? [];
    expect(views.map((view) => view.segments)).toEqual([
      [{ index: 0, ms: 6000 }],
      [{ index: 0, ms: 6000 }],
      [{ index: 1, ms: 6000 }],
    ]);
    expect(new Set(views.map(({ tokenHash, ipHash }) => tokenHash + ipHash)).size).toBe(3);
  });

  it('knows what is missing before a segment counts, and that nothing is afterwards', () => {
    const meter = createUsageMeter(clock, 1e6);
    const missing = (bytes = 1001): number => meter.missing(watched({ bytes }));
    expect([missing(), missing(1000), missing(1)]).toEqual([501, 500, 1]);
    meter.sent(watched(), 200);
    expect(missing()).toBe(301);
    meter.sent(watched(), 300);
    expect(missing()).toBe(1);
    meter.sent(watched(), 1);
    expect(missing()).toBe(0);
    expect(segments(meter)).toEqual([0]);
  });

  it('adds a share in one quality to a share in another', () => {
    const meter = createUsageMeter(clock, 1e6);
    meter.sent(watched({ bytes: 1000 }), 300);
    meter.sent(watched({ bytes: 90_000 }), 18_000);
    expect(segments(meter)).toEqual([0]);
  });

  it('has the same hashes on every process, and neither token nor address in them', () => {
    const [a, b] = [createUsageMeter(clock, 1e6), createUsageMeter(clock, 1e6)];
    for (const meter of [a, b]) meter.sent(watched(), 1001);
    const [one, two] = [a.take(), b.take()];
    expect(one).toEqual(two);
    expect(JSON.stringify([...one])).not.toMatch(/1\.1\.1\.1|"T"/);
  });
});

describe('the memory of a viewer', () => {
  it('counts each segment of a day once, in any order, within what is booked for it', () => {
    const meter = createUsageMeter(clock, 1e6);
    const day = 14_400;
    for (let n = day - 1; n >= 0; n--) meter.sent(watched({ segment: n }), 1001);
    expect(new Set(segments(meter)).size).toBe(day);
    for (let n = 0; n < day; n++) meter.sent(watched({ segment: n }), 1001);
    expect(segments(meter)).toEqual([]);
  });
});

describe('segment sets', () => {
  it('hold what was added and nothing else, in a bit each', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(5_000)), fc.nat(5_000), (added, other) => {
        const set = new SegmentSet();
        for (const n of added) set.add(n);
        for (const n of added) expect(set.has(n)).toBe(true);
        expect(set.has(other)).toBe(added.includes(other));
        expect(set.bytes).toBeLessThanOrEqual(2 * Math.ceil((Math.max(0, ...added) + 1) / 8) + 64);
      }),
    );
  });
});

describe('the usage publisher', () => {
  const setUp = () => {
    const meter = createUsageMeter(clock, 1e7);
    const published: OutgoingMessage[] = [];
    const bus = { down: false, breaksAfter: Infinity };
    const portions: number[] = [];
    const publish: Bus['publish'] = async (batch) => {
      if (bus.down || bus.breaksAfter-- <= 0) throw new Error('away');
      portions.push(batch.length);
      published.push(...batch);
    };
    const publisher = createUsagePublisher({
      bus: { publish } as Bus,
      ...{ meter, clock, logger: silentLogger, metrics: createMetrics({ service: 'cdn' }) },
    });
    const messages = () => published.map(({ value }) => value as unknown as PlaybackUsageMessage);
    return { meter, bus, portions, published, publisher, messages };
  };

  it('sends one message per account, numbered, and nothing when there is nothing', async () => {
    const { meter, published, publisher, messages } = setUp();
    await publisher.flush();
    meter.sent(watched(), 1001);
    meter.sent(watched({ accountId: 'acc_2', token: tokenOf('U') }), 1001);
    await publisher.flush();
    await publisher.flush();
    expect(published.map(({ key }) => key)).toEqual(['acc_1', 'acc_2']);
    expect(messages().map(({ sequence }) => sequence)).toEqual([0, 1]);
    expect(new Set(messages().map(({ bootId }) => bootId)).size).toBe(1);
  });

  it('keeps batches that could not be sent, as they were', async () => {
    const { meter, bus, publisher, messages } = setUp();
    bus.down = true;
    meter.sent(watched(), 1001);
    await expect(publisher.flush()).rejects.toThrow('away');
    meter.sent(watched({ segment: 1 }), 1001);
    await expect(publisher.flush()).rejects.toThrow('away');
    bus.down = false;
    await publisher.flush();
    expect(messages().map(({ sequence, views }) => [sequence, views[0]?.segments[0]?.index])).toEqual([
      [0, 0],
      [1, 1],
    ]);
  });

  it('cuts what is too much for one message', async () => {
    const { meter, publisher, messages } = setUp();
    for (let n = 0; n < 1_001; n++) meter.sent(watched({ ip: `10.0.${n >> 8}.${n & 255}` }), 1001);
    await publisher.flush();
    expect(messages().map(({ views }) => views.length)).toEqual([500, 500, 1]);
  });

  it('cuts a view of many segments too, and loses none of them', async () => {
    const { meter, published, publisher, messages } = setUp();
    for (let n = 0; n < 14_400; n++) meter.sent(watched({ segment: n }), 1001);
    await publisher.flush();
    for (const { value } of published) expect(JSON.stringify(value).length).toBeLessThan(200_000);
    const sent = messages().flatMap(({ views }) => views.flatMap((view) => view.segments));
    expect(sent.map(({ index }) => index)).toEqual(Array.from({ length: 14_400 }, (_, n) => n));
    expect(new Set(messages().map(({ sequence }) => sequence)).size).toBe(messages().length);
  });

  it('sends what an outage left in portions, and only what is missing after another', async () => {
    const { meter, bus, portions, publisher, messages } = setUp();
    bus.down = true;
    for (let account = 0; account < 100; account++) {
      meter.sent(watched({ accountId: `acc_${account}`, token: tokenOf(`${account}`) }), 1001);
    }
    await expect(publisher.flush()).rejects.toThrow('away');
    bus.down = false;
    bus.breaksAfter = 2;
    await expect(publisher.flush()).rejects.toThrow('away');
    bus.breaksAfter = Infinity;
    await publisher.flush();
    expect(Math.max(...portions)).toBeLessThanOrEqual(20);
    expect(messages().map(({ sequence }) => sequence)).toEqual(Array.from({ length: 100 }, (_, n) => n));
  });
});
