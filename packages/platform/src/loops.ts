import { type Clock } from './clock.ts';
import { type Logger } from './logger.ts';
import { type Metrics } from './metrics.ts';

/** Work that goes on until its signal aborts. */
export interface Loop {
  readonly name: string;
  /**
   * Runs until `signal` aborts. Rejecting is a failure: the loop turns red and is started again after a wait.
   * `done` is called after each piece of work that went well: it turns the loop green.
   */
  run(signal: AbortSignal, done: () => void): Promise<void>;
}

/** What a loop runs that does a piece of work, rests for `everyMs`, and does it again. */
export const repeatEvery =
  (everyMs: number, clock: Clock, work: (signal: AbortSignal) => void | Promise<void>): Loop['run'] =>
  async (signal, done) => {
    while (!signal.aborted) {
      await work(signal);
      done();
      await clock.sleep(everyMs, signal).catch(() => undefined);
    }
  };

export interface LoopSupervisor {
  start(): void;
  /** Aborts every loop and waits for them. */
  stop(): Promise<void>;
  /** `ok`, or what is wrong, by loop name. */
  checks(): Record<string, string>;
}

const firstWaitMs = 500;
const longestWaitMs = 30_000;

/**
 * Keeps loops running: one that fails is logged, shown red and started again with growing waits, while its
 * siblings go on. Exports last success and failures of each.
 */
export function superviseLoops(
  loops: readonly Loop[],
  deps: { clock: Clock; logger: Logger; metrics: Metrics },
): LoopSupervisor {
  const { clock, logger, metrics } = deps;
  const stopping = new AbortController();
  const isStopping = (): boolean => stopping.signal.aborted;
  const states = new Map(loops.map((loop) => [loop.name, 'ok']));
  const lastSuccess = metrics.gauge(
    'millrace_loop_last_success_timestamp_seconds',
    'When the loop last did its work, Unix time.',
    ['loop'],
  );
  const failures = metrics.counter('millrace_loop_failures_total', 'How often the loop failed.', ['loop']);
  for (const { name } of loops) failures.inc({ loop: name }, 0);
  let running: Promise<void>[] = [];

  const keep = async (loop: Loop): Promise<void> => {
    let waitMs = firstWaitMs;
    const done = (): void => {
      waitMs = firstWaitMs;
      states.set(loop.name, 'ok');
      lastSuccess.set(clock.now().getTime() / 1000, { loop: loop.name });
    };
    while (!isStopping()) {
      try {
        await loop.run(stopping.signal, done);
        if (!isStopping()) throw new Error('the loop ended by itself');
      } catch (error) {
        if (isStopping()) return;
        states.set(loop.name, error instanceof Error ? error.message : 'failed');
        failures.inc({ loop: loop.name });
        logger.error({ err: error, loop: loop.name, waitMs }, 'loop failed');
        await clock.sleep(waitMs, stopping.signal).catch(() => undefined);
        waitMs = Math.min(2 * waitMs, longestWaitMs);
      }
    }
  };
  return {
    start: () => {
      running = loops.map(keep);
    },
    stop: async () => {
      stopping.abort(new Error('stopping'));
      await Promise.all(running);
    },
    checks: () => Object.fromEntries(states),
  };
}
