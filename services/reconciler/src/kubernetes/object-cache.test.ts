import { afterEach, describe, expect, it } from '@jest/globals';
import { createMetrics, silentLogger } from '@millrace/platform';
import { createManualClock } from '@millrace/testing';
import { type Change, type KubernetesApi, KubernetesError, type KubernetesObject } from './api.ts';
import { createObjectCache } from './object-cache.ts';

const resyncMs = 60_000;
const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(ends.splice(0).map((end) => end()));
});

const object = (name: string, version: number, uid = name): KubernetesObject => ({
  metadata: {
    ...{ name, uid, namespace: 'default', generation: 1, resourceVersion: String(version) },
    ...{ creationTimestamp: '2030-01-01T00:00:00Z', finalizers: [] },
  },
  spec: {},
});

/** A cache that runs, over an API server whose objects and watches the test has in its hands. */
async function setUp(first: KubernetesObject[]) {
  const clock = createManualClock();
  const server = { objects: first, lists: 0 };
  const watches: { from: string; say: (change: Change) => void; end: (error?: Error) => void }[] = [];
  const told: string[] = [];
  const known = new Map<string, string>();
  const api: Pick<KubernetesApi, 'list' | 'watch'> = {
    list: () => {
      server.lists++;
      return Promise.resolve({ objects: server.objects, resourceVersion: `at-list-${server.lists}` });
    },
    watch: (_kind, { resourceVersion, onChange }, signal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => resolve(), { once: true });
        const end = (error?: Error): void => (error === undefined ? resolve() : reject(error));
        watches.push({ from: resourceVersion, say: onChange, end });
      }),
  };
  const cache = createObjectCache({
    ...{ api: api as KubernetesApi, kind: 'VideoHold', resyncMs, clock, logger: silentLogger },
    metrics: createMetrics({ service: 'reconciler' }),
    onListed: () => {
      told.push(`listed ${cache.names().join(' ')}`);
      return Promise.resolve();
    },
    onChanged: (name) => told.push(name),
    onKnown: (name, there) => {
      if (there === null) known.delete(name);
      else known.set(name, there.metadata.resourceVersion);
    },
    outlives: ({ metadata: { uid } }) => uid.startsWith('kept'),
    outlivesUnseen: ({ metadata: { uid } }) => uid.startsWith('kept-unseen'),
  });
  const stopping = new AbortController();
  const running = cache.loop.run(stopping.signal, () => undefined);
  ends.push(async () => {
    stopping.abort();
    await running;
  });
  await clock.whenSleeping();
  return { clock, server, watches, told, known, cache };
}

describe('a cache of objects', () => {
  it('watches from the version that it listed, and knows what it is told', async () => {
    const { watches, told, cache } = await setUp([object('a', 1)]);
    expect(watches.map(({ from }) => from)).toEqual(['at-list-1']);
    watches[0]?.say({ type: 'changed', object: object('b', 2) });
    watches[0]?.say({ type: 'deleted', object: object('a', 3) });
    expect(told).toEqual(['listed a', 'b', 'a']);
    expect([cache.names(), cache.get('a')]).toEqual([['b'], null]);
  });

  it('keeps of what was deleted what is to be kept, in order, until it is told to forget it', async () => {
    const [first, second] = [object('a', 2, 'kept-1'), object('a', 4, 'kept-2')];
    const { watches, cache } = await setUp([object('a', 1, 'kept-1'), object('b', 1)]);
    watches[0]?.say({ type: 'deleted', object: object('b', 2) });
    watches[0]?.say({ type: 'deleted', object: first });
    watches[0]?.say({ type: 'changed', object: object('a', 3, 'kept-2') });
    watches[0]?.say({ type: 'deleted', object: second });
    expect([cache.gone('b'), cache.gone('a')]).toEqual([null, first]);
    cache.forget(first);
    expect(cache.gone('a')).toBe(second);
    cache.forget(second);
    expect(cache.gone('a')).toBeNull();
  });

  it('keeps what a list does not have any more, though no watch told that it was deleted', async () => {
    const [lost, replaced] = [object('a', 1, 'kept-unseen-1'), object('b', 1, 'kept-unseen-2')];
    const others = [object('c', 1, 'kept'), object('d', 1)];
    const { clock, server, told, cache } = await setUp([lost, replaced, ...others]);
    const successor = object('b', 7, 'kept-unseen-3');
    server.objects = [successor];
    await clock.advance(resyncMs);
    expect([cache.gone('a'), cache.gone('b'), cache.gone('c'), cache.gone('d')]).toEqual([
      ...[lost, replaced],
      ...[null, null],
    ]);
    expect(cache.get('b')).toBe(successor);
    expect(told).toEqual(['listed a b c d', 'listed b', 'a', 'b']);
    await clock.advance(resyncMs);
    expect(told.slice(4)).toEqual(['listed b']);
  });

  it('says what it knows: of lists, watches and answers to writes', async () => {
    const { clock, server, watches, known, cache } = await setUp([object('a', 1), object('b', 1)]);
    watches[0]?.say({ type: 'changed', object: object('c', 2) });
    watches[0]?.say({ type: 'deleted', object: object('b', 3) });
    cache.put(object('a', 4));
    expect(Object.fromEntries(known)).toEqual({ a: '4', c: '2' });
    server.objects = [object('a', 5), object('d', 5)];
    await clock.advance(resyncMs);
    expect(Object.fromEntries(known)).toEqual({ a: '5', d: '5' });
  });

  it.each([
    ['ends', undefined],
    ['is lost', new KubernetesError('unavailable', 'reset')],
    ['is for a version that is too old', new KubernetesError('gone', 'too old')],
  ])('lists anew when its watch %s, and at most once a second', async (_, error) => {
    const { clock, server, watches, told } = await setUp([object('a', 1)]);
    server.objects = [object('c', 9)];
    watches[0]?.end(error);
    await clock.advance(999);
    expect(server.lists).toBe(1);
    await clock.advance(1);
    expect(told).toEqual(['listed a', 'listed c']);
    expect(watches.map(({ from }) => from)).toEqual(['at-list-1', 'at-list-2']);
  });

  it('lists anew after the resync, though its watch is silent', async () => {
    const { clock, server, told } = await setUp([]);
    server.objects = [object('kept-back', 4)];
    await clock.advance(resyncMs);
    expect(told).toEqual(['listed ', 'listed kept-back']);
  });

  it('takes the answer to a write, but not over something newer or another object of that name', async () => {
    const { watches, cache } = await setUp([object('a', 10)]);
    const version = (): string | undefined => cache.get('a')?.metadata.resourceVersion;
    cache.put(object('a', 11));
    expect(version()).toBe('11');
    cache.put(object('a', 9));
    expect(version()).toBe('11');
    cache.put(object('a', 100, 'another'));
    expect(version()).toBe('11');
    watches[0]?.say({ type: 'deleted', object: object('a', 12) });
    cache.put(object('a', 13));
    expect(cache.get('a')).toBeNull();
  });
});
