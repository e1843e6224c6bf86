import { type Loop } from '@millrace/platform';
import { type Subscription } from './bus.ts';

/** A service's place in a group of the bus, which it takes when the bus is there. */
export interface Member {
  /** Joins, and keeps the place until it is stopped: for `superviseLoops`, which tries again with growing waits. */
  readonly loop: Loop;
  /** Whether it has its place. */
  readonly joined: boolean;
  /** Resolves after the first attempt to join, whatever came of it; rejects when `signal` aborts before. */
  attempted(signal: AbortSignal): Promise<void>;
}

/**
 * Joins a group for a service that has work without the bus too: one that is away keeps its consumers waiting, not
 * the service.
 * @param join as `consume` or `Bus.subscribe`
 */
export function createMember(name: string, join: () => Promise<Subscription>): Member {
  const first = Promise.withResolvers<undefined>();
  let joined = false;
  const run: Loop['run'] = async (signal, done) => {
    const stopped = aborted(signal);
    const joining = join();
    try {
      const subscription = await Promise.race([joining, stopped]);
      if (subscription === undefined) {
        // A stop does not wait for a bus that is away.
        joining.then((late) => late.close()).catch(() => undefined);
        return;
      }
      joined = true;
      done();
      first.resolve(undefined);
      await stopped;
      await subscription.close();
    } finally {
      joined = false;
      first.resolve(undefined);
    }
  };
  return {
    loop: { name, run },
    get joined() {
      return joined;
    },
    attempted: async (signal) => {
      await Promise.race([first.promise, aborted(signal)]);
      signal.throwIfAborted();
    },
  };
}

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
