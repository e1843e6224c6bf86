import { type Clock, type Logger, type Metrics } from '@millrace/platform';
import { type ClaimedTask, claimTask, type Database } from '@millrace/store';
import { type EncoderConfig } from '../config.ts';
import { type AttemptResult } from './attempt.ts';
import { holdLease, type HeldLease } from './lease.ts';
import { attemptMeasures } from './measures.ts';
import { AttemptStopped } from './trouble.ts';

export interface SlotsDeps {
  config: EncoderConfig;
  store: Database;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /**
   * Asked before each claim. One that can only fail its tasks must leave them to others: being quick at that, it would
   * take most of them.
   */
  mayClaim: () => Promise<boolean>;
  work: (task: ClaimedTask, signal: AbortSignal) => Promise<AttemptResult>;
}

interface Running {
  lease: HeldLease;
  ended: Promise<void>;
}

/**
 * The places where tasks are worked on. A free slot claims when it is told to look; after each task it looks
 * again by itself.
 */
export class Slots {
  readonly #deps: SlotsDeps;
  readonly #running = new Set<Running>();
  /** Slots whose claim is on its way. */
  readonly #claiming = new Set<Promise<boolean>>();
  #closed = false;
  #waiting: (() => void)[] = [];
  readonly #metrics: ReturnType<typeof slotMetrics>;

  constructor(deps: SlotsDeps) {
    this.#deps = deps;
    this.#metrics = slotMetrics(deps.metrics);
    attemptMeasures(deps.metrics);
    deps.metrics.observe('millrace_encode_slots_busy', 'Slots with a task.', () => this.#running.size);
  }

  get free(): number {
    return this.#closed ? 0 : this.#deps.config.ENCODER_SLOTS - this.#running.size - this.#claiming.size;
  }

  /** Undefined when a slot is free now (or none ever will be), else resolves when one is. */
  whenFree(): Promise<void> | undefined {
    return this.free > 0 || this.#closed ? undefined : new Promise((resolve) => this.#waiting.push(resolve));
  }

  /**
   * Claims one task if a slot is free, and begins it. False when there was no slot, or nothing to claim, or it may not.
   * @throws when the record cannot be reached
   */
  async look(): Promise<boolean> {
    if (this.free < 1) return false;
    const claim = this.#claimAndBegin();
    this.#claiming.add(claim);
    try {
      return await claim;
    } finally {
      this.#claiming.delete(claim);
      this.#wake();
    }
  }

  /** Takes nothing new; lets tasks end for a while, then hands back what is left. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#wake();
    const { clock, config } = this.#deps;
    const drained = new AbortController();
    await Promise.race([
      this.#settled().finally(() => {
        drained.abort();
      }),
      clock.sleep(config.ENCODER_DRAIN_MS, drained.signal).catch(() => undefined),
    ]);
    for (const { lease } of this.#running) lease.stop(new AttemptStopped('shutdown'));
    await this.#settled();
  }

  /** Resolves when nothing runs and no claim is on its way, which may have begun a task. */
  async #settled(): Promise<void> {
    while (this.#running.size + this.#claiming.size > 0) {
      await Promise.allSettled([...this.#claiming, ...[...this.#running].map(({ ended }) => ended)]);
    }
  }

  async #claimAndBegin(): Promise<boolean> {
    const task = (await this.#deps.mayClaim()) ? await this.#claim() : null;
    if (task === null) return false;
    this.#begin(task);
    return true;
  }

  async #claim(): Promise<ClaimedTask | null> {
    const { config, store } = this.#deps;
    const { ENCODER_WORKER: worker, ENCODER_LEASE_MS: leaseMs } = config;
    for (const each of config.ENCODER_CLASSES) {
      const task = await claimTask(store, { worker, class: each, leaseMs });
      if (task !== null) return task;
    }
    return null;
  }

  #begin(task: ClaimedTask): void {
    const { clock, config, logger, work } = this.#deps;
    const lease = holdLease(this.#deps, task, config.ENCODER_LEASE_MS);
    const startedAt = clock.now().getTime();
    this.#metrics.queued.observe(task.queuedMs / 1000, { kind: task.kind });
    const run = async (): Promise<void> => {
      const result = await work(task, lease.signal);
      await lease.release();
      this.#metrics.tasks.inc({ kind: task.kind, result });
      this.#metrics.duration.observe((clock.now().getTime() - startedAt) / 1000, { kind: task.kind });
    };
    const running: Running = {
      lease,
      ended: run()
        .catch((error: unknown) => logger.error({ err: error, taskId: task.id }, 'attempt broke'))
        .finally(() => {
          this.#running.delete(running);
          this.#wake();
          // What comes next is often waiting already; a record that is away is asked again by the idle look.
          this.look().catch((error: unknown) => logger.warn({ err: error }, 'claim failed'));
        }),
    };
    this.#running.add(running);
    // Claimed while the encoder was closing: it is handed back at once.
    if (this.#closed) lease.stop(new AttemptStopped('shutdown'));
  }

  #wake(): void {
    if (this.free < 1 && !this.#closed) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

const seconds = [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600];

const slotMetrics = (metrics: Metrics) => ({
  tasks: metrics.counter('millrace_encode_tasks_total', 'Attempts by kind and how they ended.', [
    'kind',
    'result',
  ]),
  queued: metrics.histogram(
    'millrace_encode_queue_seconds',
    'How long a task was due before it was claimed.',
    seconds,
    ['kind'],
  ),
  duration: metrics.histogram('millrace_encode_task_seconds', 'How long an attempt took.', seconds, ['kind']),
});
