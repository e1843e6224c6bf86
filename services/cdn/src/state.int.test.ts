import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { topics } from '@millrace/contract';
import { waitFor } from '@millrace/testing';
import { type CdnHarness, closeCdns, startCdn } from './testing/harness.ts';
import { accountState, sample, videoState } from './testing/sample.ts';

let harness: CdnHarness;
beforeEach(async () => {
  harness = await startCdn();
});
afterEach(closeCdns);

const code = async (path = '720p/seg-0.m4s') => (await harness.ask(path)).headers['x-svc-error'] ?? 'served';
const becomes = (wanted: string, path?: string) =>
  waitFor(async () => (await code(path)) === wanted, { what: wanted });

describe('changes by the bus', () => {
  it.each(['held', 'deleted', 'failed'] as const)(
    'a video that turns %s stops playing, also what was served before [CDN-310, CDN-327, CDN-332]',
    async (status) => {
      for (const path of ['master.m3u8', '720p/index.m3u8', '720p/seg-0.m4s', 'poster.jpg']) {
        expect(await code(path)).toBe('served');
      }
      await harness.publish({ v: 1, kind: 'video', state: videoState({ version: 6, status }) });
      await becomes('video_unavailable');
      for (const path of ['master.m3u8', '720p/index.m3u8', 'poster.jpg']) {
        expect(await code(path)).toBe('video_unavailable');
      }
      await harness.publish({ v: 1, kind: 'video', state: videoState({ version: 7 }) });
      await becomes('served');
      expect(harness.record.reads).toBe(1);
    },
  );

  it('an account over its limit stops, and a plan change opens a quality [CDN-328, CDN-203, MET-009]', async () => {
    const master = async () => (await harness.ask('master.m3u8')).body.toString();
    expect(await code('1080p/index.m3u8')).toBe('plan_limit_reached');
    expect(await master()).not.toContain('1080p/index.m3u8');
    await harness.publish({
      v: 1,
      kind: 'account',
      state: accountState({ version: 4, maxQuality: '1080p' }),
    });
    await becomes('served', '1080p/index.m3u8');
    expect(await master()).toContain('1080p/index.m3u8');
    await harness.publish({
      v: 1,
      kind: 'account',
      state: accountState({ version: 5, overWatchLimit: true }),
    });
    await becomes('plan_limit_reached');
  });

  it('a message that does not parse makes the CDN ask the record again', async () => {
    expect(await code()).toBe('served');
    harness.record.videos.set(sample.videoId, videoState({ version: 6, status: 'held' }));
    const key = sample.videoId;
    await harness.bus.publish([
      { topic: topics.playbackState.name, key, value: { v: 99, news: 'held' } },
      { topic: topics.playbackState.name, key: 'vid_none', value: 'not an object' },
    ]);
    await becomes('video_unavailable');
    expect(harness.record.reads).toBe(2);
    expect(await harness.metric('millrace_cdn_state_unreadable_total')).toBe(2);
  });
});

describe('confirmation', () => {
  it('stops playback when heartbeats and the internal route are both lost for 60 s, and goes on after [CDN-339]', async () => {
    await harness.beat();
    expect(await code()).toBe('served');
    harness.record.down = true;
    await harness.clock.advance(59_999);
    expect(await code()).toBe('served');
    await harness.clock.advance(1);
    const answer = await harness.ask('720p/seg-0.m4s');
    expect([answer.status, answer.headers['x-svc-error']]).toEqual([503, 'state_unavailable']);
    expect(answer.headers['retry-after']).toBe('5');
    expect(answer.headers['access-control-allow-origin']).toBe(`https://${sample.domain}`);
    expect(harness.cdn.health()).toMatchObject({
      ready: true,
      checks: { 'playback-state': 'unconfirmed for 60 s' },
    });
    await harness.beat();
    expect(await code()).toBe('served');
    expect(harness.cdn.health().checks['playback-state']).toBe('ok');
  });

  it('goes on by the internal route alone', async () => {
    await harness.beat();
    for (let minute = 0; minute < 3; minute++) {
      expect(await code()).toBe('served');
      await harness.clock.advance(60_000);
    }
    harness.record.videos.set(sample.videoId, videoState({ version: 6, status: 'held' }));
    await becomes('video_unavailable');
  });

  it('goes on by heartbeats alone', async () => {
    expect(await code()).toBe('served');
    const { reads } = harness.record;
    harness.record.down = true;
    for (let minute = 0; minute < 3; minute++) {
      await harness.clock.advance(60_000);
      await harness.beat();
      expect(await code()).toBe('served');
    }
    expect(harness.record.reads).toBe(reads);
  });

  it('says at 20 s without either that somebody must look', async () => {
    await harness.beat();
    harness.record.down = true;
    await harness.clock.advance(15_000);
    expect(harness.log.text()).not.toContain('unconfirmed');
    await harness.clock.advance(5_000);
    expect(await harness.metric('millrace_cdn_state_unconfirmed_seconds')).toBe(20);
    expect(harness.log.lines.filter(({ level }) => level === 'error')).toMatchObject([
      { message: 'playback state is unconfirmed; playback stops at 60 s', fields: { seconds: 20 } },
    ]);
  });
});

describe('start and stop', () => {
  it('is known to the record before it is ready', () => {
    expect(harness.record.notes).toEqual([{ cutOff: false }]);
    expect(harness.cdn.health().ready).toBe(true);
  });

  it('serves without the bus by what the record knows, which knows of it', async () => {
    await harness.close();
    harness = await startCdn({}, { bus: true });
    await waitFor(() => harness.record.notes.length === 2, { what: 'a second word to the record' });
    expect(harness.record.notes).toEqual([{ cutOff: false }, { cutOff: true }]);
    expect(harness.cdn.health()).toMatchObject({
      ...{ healthy: true, ready: true, checks: { 'playback-confirmations': 'the bus is away' } },
    });
    expect(await code()).toBe('served');
  });

  it.each(['bus', 'record'] as const)(
    'is not ready while nobody knows of it, and is once the %s is back',
    async (what) => {
      await harness.close();
      harness = await startCdn({}, { bus: true, record: true });
      expect(harness.cdn.health()).toMatchObject({ healthy: true, ready: false });
      harness.back(what);
      await waitFor(
        async () => {
          await harness.clock.advance(1_000);
          return harness.cdn.health().ready;
        },
        { what: 'the CDN to be ready' },
      );
    },
  );

  it('ends requests in flight and takes no more', async () => {
    let answer = (): void => undefined;
    const asked = new Promise<void>((resolve) => {
      harness.record.beforeAnswer = () =>
        new Promise((release) => {
          answer = release;
          resolve();
        });
    });
    const running = harness.ask('master.m3u8');
    await asked;
    const stopping = harness.cdn.stop();
    expect(harness.cdn.health().ready).toBe(false);
    answer();
    const { status, headers } = await running;
    expect([status, headers.connection]).toEqual([200, 'close']);
    await stopping;
    await expect(harness.ask('master.m3u8')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});

describe('watched time', () => {
  it('is published each second, once per segment, for playback tokens only [MET-006, MET-007, MET-008]', async () => {
    const token = harness.token();
    for (const path of [
      '720p/seg-0.m4s',
      '360p/seg-0.m4s',
      '720p/seg-1.m4s',
      'audio/seg-2.m4s',
      '720p/init.mp4',
    ]) {
      await harness.ask(path, { token });
    }
    await harness.ask('720p/seg-2.m4s', { token, method: 'HEAD' });
    await harness.ask('720p/seg-2.m4s', { token, headers: { Range: 'bytes=0-99998' } });
    await harness.ask('720p/seg-3.m4s', { token, headers: { Range: 'bytes=0-60000' } });
    await harness.ask('720p/seg-3.m4s', { token, headers: { Range: 'bytes=60001-99999' } });
    for (const kind of ['preview', 'demo'] as const) {
      await harness.ask('720p/seg-0.m4s', { token: harness.token({ kind }) });
    }
    const published = () => harness.bus.read(topics.playbackUsage.name);
    await harness.clock.advance(1_000);
    await waitFor(() => published().length > 0);
    await harness.clock.advance(5_000);
    const [message, ...more] = published();
    expect(more).toEqual([]);
    expect(message?.key).toBe(sample.accountId);
    const usage = topics.playbackUsage.schema.parse(JSON.parse(message?.value ?? ''));
    expect(usage).toMatchObject({ sequence: 0, accountId: sample.accountId });
    expect(usage.views).toHaveLength(1);
    expect(usage.views[0]).toMatchObject({ videoId: sample.videoId });
    expect(usage.views[0]?.segments).toEqual([0, 1, 3].map((index) => ({ index, ms: 6006 })));
    expect(JSON.stringify(usage)).not.toContain(token);
  });
});
