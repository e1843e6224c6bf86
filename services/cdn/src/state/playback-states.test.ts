import { describe, expect, it } from '@jest/globals';
import {
  type AccountPlaybackState,
  type PlaybackStateResponse,
  type ProjectPlaybackState,
  type VideoPlaybackState,
} from '@millrace/contract';
import { createMetrics } from '@millrace/platform';
import { captureLogger, createManualClock } from '@millrace/testing';
import { createPlaybackStates } from './playback-states.ts';
import { type RecordClient } from './record-client.ts';

const video = (version: number, more: Partial<VideoPlaybackState> = {}): VideoPlaybackState => ({
  ...{ videoId: 'vid_1', accountId: 'acc_1', version, status: 'ready', indexKey: 'i' },
  ...{ projectId: 'prj_1', title: 'One', captions: [] },
  ...more,
});
const account = (version: number, more: Partial<AccountPlaybackState> = {}): AccountPlaybackState => ({
  ...{ accountId: 'acc_1', version, maxQuality: '720p', overWatchLimit: false, whiteLabel: false },
  ...more,
});
const project = (version: number, hideLogo = true): ProjectPlaybackState => ({
  projectId: 'prj_1',
  version,
  branding: { hideLogo, primaryColor: null, logoUrl: null },
});

/** A record whose reads the test answers one by one, or at once while `answer` is set. */
function setUp(partitions = 2) {
  const clock = createManualClock();
  const reads: {
    videoId: string;
    resolve(answer: PlaybackStateResponse): void;
    reject(error: Error): void;
  }[] = [];
  const record: RecordClient & { answer: PlaybackStateResponse | Error | null } = {
    answer: { video: video(1), account: account(1), project: project(1) },
    read: (videoId) =>
      new Promise((resolve, reject) => {
        reads.push({ videoId, resolve, reject });
        if (record.answer instanceof Error) reject(record.answer);
        else if (record.answer !== null) resolve(record.answer);
      }),
    note: () => Promise.resolve(),
    close: () => undefined,
  };
  const states = createPlaybackStates({
    ...{ record, clock, logger: captureLogger().logger, metrics: createMetrics({ service: 'cdn' }) },
    maximumBytes: 1e6,
  });
  const view = async (videoId = 'vid_1') => states.view(videoId, clock.now().getTime());
  const beat = () => {
    for (let partition = 0; partition < partitions; partition++)
      states.heartbeat(partition, clock.now().getTime());
  };
  return { clock, reads, record, states, view, beat, follow: () => states.following(partitions) };
}
const away = new Error('away');

describe('reading on first request', () => {
  it('reads once for all who wait, then answers at once', async () => {
    const { reads, record, states, view, clock } = setUp();
    record.answer = null;
    const waiting = [view(), view(), view()];
    expect(reads).toHaveLength(1);
    reads[0]?.resolve({ video: video(1), account: account(1), project: project(1) });
    for (const each of await Promise.all(waiting)) expect(each?.video?.version).toBe(1);
    expect(states.view('vid_1', clock.now().getTime())).toEqual({
      video: video(1),
      account: account(1),
      project: project(1),
    });
    expect(reads).toHaveLength(1);
  });

  it('keeps that the record does not know a video, until a change says otherwise', async () => {
    const { reads, record, states, view, follow } = setUp();
    follow();
    record.answer = { video: null, account: null, project: null };
    expect(await view()).toEqual({ video: null, account: null, project: null });
    expect(await view()).toEqual({ video: null, account: null, project: null });
    expect(reads).toHaveLength(1);
    record.answer = { video: video(2), account: account(1), project: project(1) };
    states.videoChanged(video(2));
    expect((await view())?.video?.version).toBe(2);
  });

  it('answers null when the record cannot be read, and asks again after a second, not before', async () => {
    const { clock, reads, record, view } = setUp();
    record.answer = away;
    expect(await view()).toBeNull();
    expect(await view()).toBeNull();
    expect(reads).toHaveLength(1);
    await clock.advance(1_000);
    record.answer = { video: video(1), account: account(1), project: project(1) };
    expect((await view())?.video?.version).toBe(1);
  });

  it('needs no account of a video that does not play', async () => {
    const { reads, record, view } = setUp();
    record.answer = { video: video(9, { status: 'deleted' }), account: null, project: null };
    expect((await view())?.video?.status).toBe('deleted');
    expect((await view())?.account).toBeNull();
    expect(reads).toHaveLength(1);
  });
});

describe('the project', () => {
  it('is read with the video and kept up to date by its version', async () => {
    const { reads, states, view, follow } = setUp();
    follow();
    expect((await view())?.project).toEqual(project(1));
    states.projectChanged(project(3, false));
    states.projectChanged(project(2));
    expect((await view())?.project).toEqual(project(3, false));
    expect(reads).toHaveLength(1);
  });

  it('keeps a change that overtakes the read of it', async () => {
    const { reads, record, states, view, follow } = setUp();
    follow();
    record.answer = null;
    const waiting = view();
    states.projectChanged(project(2, false));
    reads[0]?.resolve({ video: video(1), account: account(1), project: project(1) });
    expect((await waiting)?.project).toEqual(project(2, false));
  });

  it('is asked for once where the record says nothing of it', async () => {
    const { reads, record, view } = setUp();
    record.answer = { video: video(1), account: account(1), project: null };
    expect((await view())?.project).toBeNull();
    expect((await view())?.project).toBeNull();
    expect(reads).toHaveLength(1);
  });

  it('is read again when its change cannot be read, and after a gap', async () => {
    const { reads, states, view, follow } = setUp();
    follow();
    await view();
    states.unreadable('prj_1');
    expect((await view())?.project).toEqual(project(1));
    expect(reads).toHaveLength(2);
    states.gap();
    await view();
    expect(reads).toHaveLength(3);
  });

  it('is confirmed like the rest: what is older than a minute is not shown', async () => {
    const { clock, record, states, view } = setUp();
    await view();
    await clock.advance(59_000);
    record.answer = { video: video(1, { projectId: 'prj_2' }), account: account(1), project: null };
    await view('vid_1');
    record.answer = away;
    states.videoChanged(video(2, { projectId: 'prj_1' }));
    await clock.advance(2_000);
    expect(await view()).toBeNull();
  });
});

describe('changes', () => {
  it('are taken when their version is higher, else not', async () => {
    const { states, view } = setUp();
    await view();
    states.videoChanged(video(3, { indexKey: 'new' }));
    states.videoChanged(video(2));
    states.accountChanged(account(2, { overWatchLimit: true }));
    states.accountChanged(account(2));
    expect(await view()).toEqual({
      video: video(3, { indexKey: 'new' }),
      account: account(2, { overWatchLimit: true }),
      project: project(1),
    });
  });

  it('that come while the state is read win over an older answer, for the video and its account', async () => {
    const { reads, record, states, view } = setUp();
    record.answer = null;
    const waiting = view();
    states.videoChanged(video(2, { indexKey: 'new' }));
    states.accountChanged(account(7, { overWatchLimit: true }));
    reads[0]?.resolve({ video: video(1), account: account(1), project: project(1) });
    expect((await waiting)?.video?.indexKey).toBe('new');
    expect(await view()).toEqual({
      video: video(2, { indexKey: 'new' }),
      account: account(7, { overWatchLimit: true }),
      project: project(1),
    });
  });

  it('that are older than the answer lose', async () => {
    const { reads, record, states, view } = setUp();
    record.answer = null;
    const waiting = view();
    states.videoChanged(video(2, { status: 'held' }));
    reads[0]?.resolve({ video: video(3), account: account(1), project: project(1) });
    expect((await waiting)?.video).toEqual(video(3));
  });

  it('that come again in an older form while the state is read do not undo a newer one', async () => {
    const { reads, record, states, view } = setUp();
    record.answer = null;
    const waiting = view();
    states.videoChanged(video(3, { status: 'held' }));
    states.videoChanged(video(2));
    states.accountChanged(account(5, { overWatchLimit: true }));
    states.accountChanged(account(4));
    reads[0]?.resolve({ video: video(1), account: account(1), project: project(1) });
    expect(await waiting).toEqual({
      video: video(3, { status: 'held' }),
      account: account(5, { overWatchLimit: true }),
      project: project(1),
    });
  });

  it.each(['unreadable', 'gap'] as const)('%s while it is read make it read again', async (kind) => {
    const { reads, record, states, view } = setUp();
    record.answer = null;
    const waiting = view();
    if (kind === 'gap') states.gap();
    else states.unreadable('vid_1');
    reads[0]?.resolve({ video: video(1), account: account(1), project: project(1) });
    await Promise.resolve();
    await Promise.resolve();
    await new Promise(setImmediate);
    expect(reads).toHaveLength(2);
    reads[1]?.resolve({ video: video(2, { status: 'held' }), account: account(1), project: project(1) });
    expect((await waiting)?.video?.version).toBe(2);
  });

  it('that cannot be read drop the key at once, video or account', async () => {
    for (const key of ['vid_1', 'acc_1']) {
      const { reads, record, states, view } = setUp();
      await view();
      states.unreadable('vid_2');
      await view();
      expect(reads).toHaveLength(1);
      states.unreadable(key);
      record.answer = away;
      expect(await view()).toBeNull();
    }
  });
});

describe('confirmation', () => {
  it('by heartbeats on every partition lasts 60 s after the last', async () => {
    const { clock, record, states, view, beat, follow } = setUp();
    follow();
    await view();
    record.answer = away;
    await clock.advance(59_000);
    beat();
    await clock.advance(59_999);
    expect(await view()).not.toBeNull();
    // One partition alone proves nothing of the other.
    states.heartbeat(0, clock.now().getTime());
    await clock.advance(1_001);
    expect(await view()).toBeNull();
    states.heartbeat(1, clock.now().getTime());
    expect(await view()).not.toBeNull();
  });

  it('by a heartbeat reaches back to when it was made, not to when it was read', async () => {
    const { clock, record, states, view, follow } = setUp(1);
    follow();
    await view();
    record.answer = away;
    await clock.advance(90_000);
    states.heartbeat(0, clock.now().getTime() - 60_000);
    expect(await view()).toBeNull();
    states.heartbeat(0, clock.now().getTime() - 59_999);
    expect(await view()).not.toBeNull();
  });

  it('by a database clock that is ahead does not reach into the future', async () => {
    const { clock, record, states, view, follow } = setUp(1);
    follow();
    await view();
    record.answer = away;
    states.heartbeat(0, clock.now().getTime() + 10_000);
    await clock.advance(60_000);
    expect(await view()).toBeNull();
  });

  it('by the internal route lasts 60 s, and is renewed in the background after 15 s of use', async () => {
    const { clock, reads, record, view } = setUp();
    await view();
    await clock.advance(14_999);
    await view();
    expect(reads).toHaveLength(1);
    await clock.advance(1);
    record.answer = null;
    // It does not wait for the answer.
    expect((await view())?.video?.version).toBe(1);
    expect(reads).toHaveLength(2);
    reads[1]?.resolve({ video: video(2, { status: 'held' }), account: account(1), project: project(1) });
    await new Promise(setImmediate);
    expect((await view())?.video?.status).toBe('held');
  });

  it('does not come from heartbeats for what was read before the tail was followed', async () => {
    const { clock, record, states, view, beat } = setUp();
    await view();
    await clock.advance(10_000);
    states.following(2);
    beat();
    record.answer = away;
    await clock.advance(50_000);
    beat();
    expect(await view()).toBeNull();
  });

  it('is lost for everything by a gap, until it is read again', async () => {
    const { clock, reads, record, states, view, beat, follow } = setUp();
    follow();
    await view();
    await clock.advance(30_000);
    beat();
    states.gap();
    record.answer = { video: video(2, { status: 'held' }), account: account(1), project: project(1) };
    expect((await view())?.video?.status).toBe('held');
    expect(reads).toHaveLength(2);
    expect((await view())?.video?.status).toBe('held');
    expect(reads).toHaveLength(2);
  });

  it('of before a gap holds while the record is away, and no heartbeat renews it', async () => {
    const { clock, record, states, view, beat, follow } = setUp();
    follow();
    await view();
    await clock.advance(30_000);
    beat();
    states.gap();
    record.answer = away;
    await clock.advance(59_999);
    beat();
    expect(await view()).not.toBeNull();
    await clock.advance(1);
    beat();
    expect(await view()).toBeNull();
  });

  it('of before a gap is looked at anew after a read that failed: time has passed, and changes came', async () => {
    const { clock, reads, record, states, view, beat, follow } = setUp();
    follow();
    await view();
    beat();
    states.gap();
    record.answer = null;
    const held = view();
    states.videoChanged(video(2, { status: 'held' }));
    reads.at(-1)?.reject(away);
    expect((await held)?.video?.status).toBe('held');

    await clock.advance(59_000);
    const late = view();
    await clock.advance(1_000);
    reads.at(-1)?.reject(away);
    expect(await late).toBeNull();
  });

  it('ends when the tail is followed no longer', async () => {
    const { clock, record, states, view, beat, follow } = setUp();
    follow();
    await view();
    states.unfollowed();
    record.answer = away;
    await clock.advance(60_000);
    beat();
    expect(await view()).toBeNull();
  });

  it('does not come from heartbeats for what is read while the tail is not followed', async () => {
    const { clock, record, states, view, beat, follow } = setUp();
    follow();
    states.unfollowed();
    await view();
    record.answer = away;
    await clock.advance(60_000);
    beat();
    expect(await view()).toBeNull();
  });

  it('waits for a partition that was added, from its first message on', async () => {
    const { clock, record, states, view, beat, follow } = setUp(2);
    follow();
    await view();
    states.partitionSeen(2);
    record.answer = away;
    await clock.advance(60_000);
    beat();
    expect(await view()).toBeNull();
    states.heartbeat(2, clock.now().getTime());
    expect(await view()).not.toBeNull();
  });
});

describe('a clock that is set back', () => {
  it('does not make old confirmations last', async () => {
    const { clock, record, states, view } = setUp();
    await view();
    record.answer = { video: video(2), account: account(1), project: project(1) };
    const earlier = clock.now().getTime() - 3_600_000;
    expect((await states.view('vid_1', earlier))?.video?.version).toBe(2);
    // A few milliseconds are no reason.
    expect(states.view('vid_1', clock.now().getTime() - 5)).not.toBeInstanceOf(Promise);
  });
});

describe('the instant up to which a process decides by every change', () => {
  const start = Date.parse('2030-01-01T00:00:00.000Z');

  it('is that of the last heartbeat on every partition', async () => {
    const { states, beat, follow, clock } = setUp();
    expect(states.confirmedUpToMs()).toBe(-Infinity);
    follow();
    beat();
    expect(states.confirmedUpToMs()).toBe(start);
    await clock.advance(5_000);
    states.heartbeat(0, start + 5_000);
    expect(states.confirmedUpToMs()).toBe(start);
    states.heartbeat(1, start + 5_000);
    expect(states.confirmedUpToMs()).toBe(start + 5_000);
  });

  it('stays for 60 s after a gap, in which what was known before it may be believed', async () => {
    const { states, beat, follow, view, clock } = setUp();
    follow();
    beat();
    await view();
    await clock.advance(5_000);
    states.gap();
    beat();
    expect(states.confirmedUpToMs()).toBe(start);
    await clock.advance(30_000);
    states.gap();
    beat();
    await clock.advance(59_999);
    beat();
    expect(states.confirmedUpToMs()).toBe(start);
    await clock.advance(1);
    expect(states.confirmedUpToMs()).toBe(start + 94_999);
  });
});
