import { type Clock, type Logger, type Loop, type Metrics } from '@millrace/platform';
import { createRates } from './rates.ts';

export interface WorkQueueOptions {
  name: string;
  /**
   * Works on one item. Resolves with how long to wait before the item's next turn, in milliseconds, or with null when
   * nothing is left to do; rejects to have it tried again, after a growing wait.
   */
  work: (key: string, signal: AbortSignal) => Promise<number | null>;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
}

/** Items to be worked on: each is there once, and in one pair of hands at a time. */
export interface WorkQueue {
  /**
   * Has the item worked on now, or once more when it is being worked on. A wait that it asked for ends; one after a
   * failure does not, nor one for its rate: then its next turn sees what is new too.
   */
  add(key: string): void;
  loop: Loop;
}

/** Items that are worked on at once. */
const hands = 8;
const firstWaitMs = 100;
const longestWaitMs = 60_000;
/** Turns of one item: those that a change needs come at once, but whatever changes it on and on is answered slowly. */
const turnRate = { burst: 10, perSecond: 1 };
/** Turns after failures, of all items together: what failed with many does not come back with all of them. */
const retryRate = { burst: 100, perSecond: 50 };

interface Item {
  state: 'queued' | 'busy' | 'waiting' | 'resting';
  /** It was added while it was worked on. */
  again: boolean;
  /** Its next turn is within its rate. */
  booked: boolean;
  failures: number;
  endWait: AbortController;
}

/** Before the next turn, in milliseconds; only what waits comes sooner when it is added. */
interface Wait {
  state: 'waiting' | 'resting';
  ms: number;
}

export function createWorkQueue({ name, work, clock, logger, metrics }: WorkQueueOptions): WorkQueue {
  const items = new Map<string, Item>();
  const queue: string[] = [];
  const idle: (() => void)[] = [];
  const turns = createRates({ ...turnRate, clock });
  const retries = createRates({ ...retryRate, clock });
  const failures = metrics.counter('millrace_kubernetes_retries_total', 'Objects to be tried again.', [
    'kind',
  ]);
  failures.inc({ kind: name }, 0);
  const depth = metrics.gauge('millrace_kubernetes_queue_objects', 'Objects that wait to be looked at.', [
    'kind',
  ]);
  const showDepth = (): void => depth.set(queue.length, { kind: name });
  showDepth();

  const enqueue = (key: string, item: Item): void => {
    item.state = 'queued';
    queue.push(key);
    showDepth();
    idle.shift()?.();
  };
  const add = (key: string): void => {
    const item = items.get(key);
    if (item === undefined) {
      const rest = { again: false, booked: false, failures: 0, endWait: new AbortController() };
      const fresh: Item = { state: 'queued', ...rest };
      items.set(key, fresh);
      enqueue(key, fresh);
    } else if (item.state === 'busy') item.again = true;
    else if (item.state === 'waiting') item.endWait.abort();
  };

  const wait = async (key: string, item: Item, { state, ms }: Wait, signal: AbortSignal): Promise<void> => {
    item.state = state;
    item.endWait = new AbortController();
    await clock.sleep(ms, AbortSignal.any([signal, item.endWait.signal])).catch(() => undefined);
    if (!signal.aborted) enqueue(key, item);
  };

  /** One turn of an item; resolves with the wait before its next, or null. */
  const turn = async (key: string, item: Item, signal: AbortSignal): Promise<Wait | null> => {
    try {
      const again = await work(key, signal);
      item.failures = 0;
      return again === null ? null : { state: 'waiting', ms: again };
    } catch (error) {
      // A share of chance, so that what failed together does not come back together.
      const ownMs = Math.min(longestWaitMs, firstWaitMs * 2 ** item.failures) * (0.5 + Math.random() / 2);
      const waitMs = Math.max(ownMs, retries.book(name));
      item.failures++;
      failures.inc({ kind: name });
      if (!signal.aborted) logger.warn({ err: error, queue: name, key, waitMs }, 'object to be tried again');
      return { state: 'resting', ms: waitMs };
    }
  };

  const hand = async (signal: AbortSignal, waits: Set<Promise<void>>, done: () => void): Promise<void> => {
    while (!signal.aborted) {
      const key = queue.shift();
      if (key === undefined) {
        await new Promise<void>((resolve) => idle.push(resolve));
        continue;
      }
      showDepth();
      const item = items.get(key);
      if (item === undefined) continue;
      const later = (next: Wait): void => {
        const waiting = wait(key, item, next, signal).finally(() => waits.delete(waiting));
        waits.add(waiting);
      };
      const restMs = item.booked ? 0 : turns.book(key);
      item.booked = true;
      if (restMs > 0) {
        later({ state: 'resting', ms: restMs });
        continue;
      }
      Object.assign(item, { state: 'busy', again: false, booked: false });
      const next = await turn(key, item, signal);
      done();
      if (item.again && next?.state !== 'resting') enqueue(key, item);
      else if (next === null) items.delete(key);
      else later(next);
    }
  };

  return {
    add,
    loop: {
      name: `kubernetes-${name}`,
      run: async (signal, done) => {
        const waits = new Set<Promise<void>>();
        const stop = (): void => idle.splice(0).forEach((wake) => wake());
        signal.addEventListener('abort', stop, { once: true });
        await Promise.all(Array.from({ length: hands }, () => hand(signal, waits, done)));
        await Promise.all(waits);
      },
    },
  };
}
