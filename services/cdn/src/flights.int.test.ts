import { once } from 'node:events';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { topics } from '@millrace/contract';
import { ObjectStoreError } from '@millrace/objects';
import { waitFor } from '@millrace/testing';
import { type CdnHarness, closeCdns, startCdn } from './testing/harness.ts';
import { accountState, sample, segmentBytes, videoState } from './testing/sample.ts';

const segment = '720p/seg-1.m4s';
const object = 'encodes/one/720p.mp4';

let harness: CdnHarness;
beforeEach(async () => {
  harness = await startCdn();
});
afterEach(closeCdns);

/** Holds reads of the segment's object until `release`; tells how many have come. */
function holdReads() {
  const gate = Promise.withResolvers<undefined>();
  const held = { reads: 0, release: () => gate.resolve(undefined) };
  harness.store.interfere = async (method, key) => {
    if (method !== 'get' || key !== object) return;
    held.reads++;
    await gate.promise;
  };
  return held;
}

/** Holds answers of the internal route; resolves once one is held. */
function holdAnswers() {
  const gate = Promise.withResolvers<undefined>();
  const asked = new Promise<void>((resolve) => {
    harness.record.beforeAnswer = () => {
      resolve();
      return gate.promise;
    };
  });
  return { asked, release: () => gate.resolve(undefined) };
}

/** A viewer on a bare socket, who asks for the paths in one write: the server has all once the first is answered. */
async function viewer(...paths: string[]) {
  const { hostname, port } = new URL(harness.cdn.listening);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const heads = paths.map(
    (path) =>
      `GET /v/${sample.videoId}/${path}?token=${harness.token()} HTTP/1.1\r\nHost: cdn\r\nOrigin: https://${sample.domain}\r\n\r\n`,
  );
  socket.write(heads.join(''));
  return { socket, received: () => Buffer.concat(chunks) };
}

const answered = (route: string, status: number) => async () =>
  (await harness.metrics.render()).includes(
    `millrace_cdn_requests_total{route="${route}",status="${status}"`,
  );

describe('a segment that many viewers ask for', () => {
  it('is read from the store once', async () => {
    const held = holdReads();
    const all = Array.from({ length: 50 }, () => harness.ask(segment));
    await waitFor(() => held.reads > 0);
    held.release();
    for (const { status, body } of await Promise.all(all)) {
      expect(status).toBe(200);
      expect(body.equals(segmentBytes('720p', 1))).toBe(true);
    }
    expect(held.reads).toBe(1);
    expect((await harness.ask(segment)).status).toBe(200);
    expect(held.reads).toBe(1);
  });

  it('reaches the others when the one who asked first has gone', async () => {
    const held = holdReads();
    const leader = await viewer(segment);
    await waitFor(() => held.reads === 1);
    const others = await Promise.all([1, 2, 3].map(() => viewer('poster.jpg', segment)));
    for (const { received } of others) await waitFor(() => received().length > sample.posterBytes);
    leader.socket.destroy();
    await waitFor(answered('segment', 499));
    held.release();
    for (const { socket, received } of others) {
      await waitFor(() => received().includes(segmentBytes('720p', 1)));
      socket.destroy();
    }
    expect(held.reads).toBe(1);
  });

  it('is served to the next when all have gone', async () => {
    const held = holdReads();
    const leaving = await viewer(segment);
    await waitFor(() => held.reads === 1);
    leaving.socket.destroy();
    await waitFor(answered('segment', 499));
    held.release();
    expect((await harness.ask(segment)).body.equals(segmentBytes('720p', 1))).toBe(true);
  });
});

describe('a segment that is on its way from the store', () => {
  const whole = segmentBytes('720p', 1);
  const half = sample.segmentBytes / 2;

  /** The segment's reads give its first half at once, and the rest, or an error, when they are told to. */
  function halfReads() {
    const rest = Promise.withResolvers<Buffer>();
    const get = harness.store.objects.get.bind(harness.store.objects);
    const held = { reads: 0, release: () => rest.resolve(whole.subarray(half)), fail: rest.reject };
    harness.store.objects.get = async (key, options) => {
      if (key !== object) return get(key, options);
      if (held.reads++ > 0) throw new ObjectStoreError('unavailable', 'away');
      async function* halves() {
        yield whole.subarray(0, half);
        yield await rest.promise;
      }
      return { stream: Readable.from(halves()), sizeBytes: whole.length, totalBytes: 1e9, etag: '"e"' };
    };
    return held;
  }
  const bodyOf = (received: Buffer): Buffer =>
    received.subarray(received.indexOf('\r\n\r\n') + '\r\n\r\n'.length);

  it('reaches all who wait, the late ones too, before its end is there', async () => {
    const held = halfReads();
    const early = await viewer(segment);
    await waitFor(() => bodyOf(early.received()).length === half, { what: 'the first half' });
    const late = await viewer(segment);
    await waitFor(() => bodyOf(late.received()).length === half, { what: 'the first half, late' });
    const ranged = harness.ask(segment, { headers: { Range: `bytes=${half - 5}-${half + 4}` } });
    held.release();
    for (const { received, socket } of [early, late]) {
      await waitFor(() => bodyOf(received()).equals(whole), { what: 'the whole' });
      socket.destroy();
    }
    expect((await ranged).body.equals(whole.subarray(half - 5, half + 5))).toBe(true);
    expect((await harness.ask(segment)).body.equals(whole)).toBe(true);
    expect(held.reads).toBe(1);
  });

  it('breaks off when the store does, and is not taken for whole', async () => {
    const held = halfReads();
    const { received, socket } = await viewer(segment);
    await waitFor(() => bodyOf(received()).length === half, { what: 'the first half' });
    held.fail(new Error('ECONNRESET'));
    await once(socket, 'close');
    expect(bodyOf(received()).length).toBe(half);
    expect(received().toString('latin1')).toContain(`Content-Length: ${whole.length}\r\n`);
    expect(held.reads).toBe(2);
  });

  it('is counted as watched once half of it is sent, though the rest never comes', async () => {
    const held = halfReads();
    const { received, socket } = await viewer(segment);
    await waitFor(() => bodyOf(received()).length === half, { what: 'the first half' });
    socket.destroy();
    await harness.clock.advance(1_000);
    await waitFor(() => harness.bus.read(topics.playbackUsage.name).length === 1, { what: 'its usage' });
    held.fail(new Error('too late'));
  });
});

describe('a state that is being read', () => {
  it('is read once for all who wait, whatever they ask for', async () => {
    const held = holdAnswers();
    const paths = ['master.m3u8', segment, '360p/init.mp4', 'poster.jpg', 'audio/index.m3u8'];
    const all = Array.from({ length: 50 }, (_, n) => harness.ask(paths[n % paths.length] ?? ''));
    await held.asked;
    held.release();
    for (const { status } of await Promise.all(all)) expect(status).toBe(200);
    expect(harness.record.reads).toBe(1);
  });

  it('takes the hold that comes meanwhile, not the older answer', async () => {
    const held = holdAnswers();
    const asking = harness.ask(segment);
    await held.asked;
    await harness.publish({ v: 1, kind: 'video', state: videoState({ version: 6, status: 'held' }) });
    await harness.beat();
    held.release();
    expect((await asking).headers['x-svc-error']).toBe('video_unavailable');
    expect((await harness.ask(segment)).headers['x-svc-error']).toBe('video_unavailable');
    expect(harness.record.reads).toBe(1);
  });

  it('takes the limit of the account that comes meanwhile', async () => {
    const held = holdAnswers();
    const asking = harness.ask(segment);
    await held.asked;
    await harness.publish({
      v: 1,
      kind: 'account',
      state: accountState({ version: 4, overWatchLimit: true }),
    });
    await harness.beat();
    held.release();
    expect((await asking).headers['x-svc-error']).toBe('plan_limit_reached');
  });
});
