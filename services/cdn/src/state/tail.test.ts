import { describe, expect, it, jest } from '@jest/globals';
import { type Bus, type BusMessage, type Handler, type SubscribeOptions } from '@millrace/bus';
import { topics } from '@millrace/contract';
import { createMetrics, silentLogger } from '@millrace/platform';
import { accountState, projectState, sample, videoState } from '../testing/sample.ts';
import { createTail, type TailDeps } from './tail.ts';

/** A bus that hands over what was subscribed with, and the calls that the tail makes on the states. */
function setUp(subscribe: () => Promise<void> = async () => undefined) {
  const calls: unknown[][] = [];
  const called =
    (name: string) =>
    (...args: unknown[]): void => {
      calls.push([name, ...args]);
    };
  const names = [
    'videoChanged',
    'accountChanged',
    'projectChanged',
    'unreadable',
    'gap',
    'following',
    'unfollowed',
    'heartbeat',
  ];
  const states = Object.fromEntries([...names, 'partitionSeen'].map((name) => [name, called(name)]));
  const subscribed = Promise.withResolvers<{ group: string; handler: Handler; options: SubscribeOptions }>();
  const close = jest.fn(async () => undefined);
  const bus = {
    partitions: async () => 4,
    subscribe: async (group: string, _topic: string, handler: Handler, options: SubscribeOptions) => {
      await subscribe();
      subscribed.resolve({ group, handler, options });
      return { assigned: () => [0, 1, 2, 3], close };
    },
  };
  const attempted = jest.fn();
  const tail = createTail(
    {
      bus: bus as unknown as Bus,
      states: states as unknown as TailDeps['states'],
      ...{ logger: silentLogger, metrics: createMetrics({ service: 'cdn' }) },
    },
    attempted,
  );
  const stop = new AbortController();
  const running = tail.run(stop.signal, () => undefined);
  const deliver = async (key: string, value: string, partition = 2) => {
    const { handler } = await subscribed.promise;
    const message = { topic: topics.playbackState.name, partition, offset: '1', key, value };
    await handler(message as BusMessage, { commit: async () => undefined, signal: stop.signal });
    return calls.splice(0).filter(([name]) => name !== 'following' && name !== 'partitionSeen');
  };
  return { calls, subscribed: subscribed.promise, close, attempted, stop, running, deliver };
}

describe('the tail of the state topic', () => {
  it('begins at the end, on every partition, in a group of its own', async () => {
    const [one, two] = [setUp(), setUp()];
    const [{ group, options }, other] = [await one.subscribed, await two.subscribed];
    expect(options).toMatchObject({ from: 'latest', concurrency: 4 });
    expect(group).not.toBe(other.group);
    for (const { stop, running } of [one, two]) {
      stop.abort();
      await running;
    }
    expect(one.calls).toEqual([['following', 4], ['unfollowed']]);
    expect(one.close).toHaveBeenCalledTimes(1);
    expect(one.attempted).toHaveBeenCalled();
  });

  it('passes on changes and heartbeats', async () => {
    const { deliver } = setUp();
    const pass = (value: object) => deliver('key', JSON.stringify({ v: 1, ...value }));
    expect(await pass({ kind: 'video', state: videoState() })).toEqual([['videoChanged', videoState()]]);
    expect(await pass({ kind: 'account', state: accountState(), more: 1 })).toEqual([
      ['accountChanged', accountState()],
    ]);
    expect(await pass({ kind: 'project', state: projectState() })).toEqual([
      ['projectChanged', projectState()],
    ]);
    const at = '2030-01-01T00:00:00.123Z';
    expect(await pass({ kind: 'heartbeat', at })).toEqual([['heartbeat', 2, Date.parse(at)]]);
  });

  it('takes a video without a title from a producer that knows of none yet', async () => {
    const { deliver } = setUp();
    const { projectId, title, ...older } = videoState();
    expect([projectId, title]).toEqual([sample.projectId, sample.title]);
    const value = JSON.stringify({ v: 1, kind: 'video', state: older });
    expect(await deliver('key', value)).toEqual([['videoChanged', { ...older, projectId: null, title: '' }]]);
  });

  it('drops what is known of a key, or everything, when a message cannot be read', async () => {
    const { deliver } = setUp();
    for (const value of ['', 'not json', '{"v":99}', '{"v":1,"kind":"video","state":{}}']) {
      expect(await deliver('vid_1', value)).toEqual([['unreadable', 'vid_1']]);
      expect(await deliver('', value)).toEqual([['gap']]);
    }
  });

  it('counts a partition from its first message on', async () => {
    const { calls, subscribed, deliver } = setUp();
    await subscribed;
    await deliver('key', 'x', 7);
    calls.length = 0;
    const { handler } = await subscribed;
    const message = { key: 'k', value: 'x', partition: 7 } as BusMessage;
    await handler(message, { commit: async () => undefined, signal: new AbortController().signal });
    expect(calls[0]).toEqual(['partitionSeen', 7]);
  });

  it('says so when the bus has passed something over', async () => {
    const { calls, subscribed } = setUp();
    const { options } = await subscribed;
    calls.length = 0;
    options.onGap?.(3);
    expect(calls).toEqual([['gap']]);
  });

  it('fails when it cannot join, to be tried again, and has followed nothing', async () => {
    const { calls, attempted, running } = setUp(async () => {
      throw new Error('no broker');
    });
    await expect(running).rejects.toThrow('no broker');
    expect(attempted).toHaveBeenCalled();
    expect(calls).toEqual([]);
  });
});
