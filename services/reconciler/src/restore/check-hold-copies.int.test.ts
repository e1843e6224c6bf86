import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type FolderObjectStore } from '@millrace/objects/folder';
import { silentLogger, systemClock } from '@millrace/platform';
import { allowSweeps, declareRestored } from '@millrace/store';
import { captureLogger } from '@millrace/testing';
import { checkHoldCopiesLoop } from './check-hold-copies.ts';
import { holdCopiesLoop } from './hold-copies.ts';
import { RestoreGuard } from './marks.ts';
import { createStage, type Stage } from './testing/stage.ts';

const signal = new AbortController().signal;

describe('copies of holds that are not as they should be', () => {
  let stage: Stage;
  let { store, objects, addVideo, statusOf, hold, lift, copies, read, guard, copyHolds, live } = {} as Stage;
  beforeAll(async () => {
    stage = await createStage();
    ({ store, objects, addVideo, statusOf, hold, lift, copies, read, guard, copyHolds, live } = stage);
  });
  afterAll(() => stage.close());
  beforeEach(() => stage.reset());

  const hours = (n: number) => ({ ...systemClock, now: () => new Date(Date.now() + n * 3_600_000) });
  const check = (laterHours = 2, by = guard()): Promise<number> =>
    checkHoldCopiesLoop({ store, objects, logger: silentLogger, clock: hours(laterHours) }, by).run(signal);
  const readOnly = async (): Promise<unknown> => read((await copies())[0]);
  /** What a former leader does that was paused within its run, when `meanwhile` is over. */
  const late = async (method: 'put' | 'deleteMany', meanwhile: () => Promise<unknown>): Promise<void> => {
    const paused: FolderObjectStore = {
      ...objects,
      put: async (...args) => {
        if (method === 'put') await meanwhile();
        return objects.put(...args);
      },
      deleteMany: async (...args) => {
        if (method === 'deleteMany') await meanwhile();
        return objects.deleteMany(...args);
      },
    };
    await copyHolds(paused);
  };

  it('deletes one that a former leader brings back late, an hour later', async () => {
    for (const id of ['vid_1', 'vid_2']) await addVideo(id);
    await hold('vid_2', 'stands');
    await copyHolds();
    await hold('vid_1', 'over');
    await late('put', async () => {
      await copyHolds();
      await lift('vid_1');
      await copyHolds();
    });
    expect(await copies()).toHaveLength(2);
    expect(await check(0)).toBe(0);
    expect(await copies()).toHaveLength(2);
    expect(await check()).toBe(1);
    expect(await readOnly()).toMatchObject({ videoId: 'vid_2' });
    await declareRestored(store, { actor: 'test' });
    await copyHolds();
    expect(await statusOf('vid_1')).toBe('ready');
  });

  it('has one made again that a former leader deletes late', async () => {
    await addVideo('vid_1');
    await hold('vid_1', 'first');
    await copyHolds();
    await lift('vid_1');
    await late('deleteMany', async () => {
      await hold('vid_1', 'second');
      await copyHolds();
    });
    expect(await copies()).toEqual([]);
    expect(await check()).toBe(1);
    await copyHolds();
    expect(await readOnly()).toMatchObject({ reason: 'second' });
    expect(await check()).toBe(0);
  });

  it('has one made again that a former leader writes over late with what the hold was', async () => {
    await addVideo('vid_1');
    await hold('vid_1', 'first');
    await late('put', async () => {
      await hold('vid_1', 'other');
      await copyHolds();
    });
    expect(await readOnly()).toMatchObject({ reason: 'first' });
    expect(await check()).toBe(1);
    await copyHolds();
    expect(await readOnly()).toMatchObject({ reason: 'other' });
    expect(await check()).toBe(0);
  });

  it('reads those of a store whose ETags are no digests', async () => {
    await addVideo('vid_1');
    await hold('vid_1', 'first');
    await copyHolds();
    const opaque: FolderObjectStore = {
      ...objects,
      list: async (...args) => {
        const { items, next } = await objects.list(...args);
        return { items: items.map((item) => ({ ...item, etag: '"opaque"' })), next };
      },
    };
    const deps = { store, objects: opaque, logger: silentLogger, clock: hours(2) };
    expect(await checkHoldCopiesLoop(deps, guard()).run(signal)).toBe(0);
  });

  it('leaves what is no copy, and goes on when the store fails at one key', async () => {
    for (const id of ['vid_1', 'vid_2', 'vid_3']) await addVideo(id);
    for (const id of ['vid_1', 'vid_2', 'vid_3']) await hold(id, 'over');
    const log = captureLogger();
    let failing = '';
    const broken: FolderObjectStore = {
      ...objects,
      put: (key, ...more) => {
        failing ||= key;
        return key === failing ? Promise.reject(new Error('broken key')) : objects.put(key, ...more);
      },
      deleteMany: (keys) =>
        keys.includes(failing) ? Promise.reject(new Error('broken key')) : objects.deleteMany(keys),
    };
    const deps = { store, objects: broken, logger: log.logger, clock: hours(2) };
    const copying = holdCopiesLoop(deps, new RestoreGuard(deps)).run(signal);
    await expect(copying).rejects.toThrow('1 copies of holds');
    expect(await copies()).toHaveLength(2);
    expect(log.text()).toContain('broken key');

    await copyHolds();
    await store.query('delete from video_holds');
    await objects.put('record/holds/0', Buffer.from('of a later version'));
    await expect(checkHoldCopiesLoop(deps, guard()).run(signal)).rejects.toThrow('1 copies of holds');
    expect(await copies()).toEqual(['record/holds/0', failing]);
  });

  it('leaves those of a restored record until its holds are placed again and sweeps are allowed', async () => {
    for (const id of ['vid_since', 'vid_gone']) await addVideo(id);
    await live(2);
    for (const id of ['vid_since', 'vid_gone']) await hold(id, 'since');
    await copyHolds();
    // The backup: it knows neither hold, and one video less.
    await store.query('delete from video_holds');
    await store.query(`delete from videos where id = 'vid_gone'`);
    await store.query(`update videos set status = 'ready'`);
    await store.query('update record_state set mark = 0');
    const leader = guard();
    expect(await check(2, leader)).toBe(0);
    await allowSweeps(store, { actor: 'somebody in a hurry' });
    expect(await check(2, leader)).toBe(0);
    expect(await copies()).toHaveLength(2);

    await declareRestored(store, { actor: 'test' });
    await copyHolds();
    expect(await statusOf('vid_since')).toBe('held');
    expect(await check(2, leader)).toBe(0);
    // A backup that is not so old may be restored instead, and know the other video.
    expect(await copies()).toHaveLength(2);
    await allowSweeps(store, { actor: 'test' });
    expect(await check(2, leader)).toBe(1);
    expect(await readOnly()).toMatchObject({ videoId: 'vid_since' });
  });
});
