import { type Clock, type Logger } from '@millrace/platform';
import { acquireLease, type Database, releaseLease } from '@millrace/store';

export interface LeaderOptions {
  store: Database;
  clock: Clock;
  logger: Logger;
  /** Name of the lease row. */
  lease: string;
  /** This process, unique per start. */
  holder: string;
  /** How long the lease lives without a renewal, in milliseconds; it is renewed every third of that. */
  ttlMs: number;
}

/**
 * Runs `work` while this process holds the lease, and aborts its signal as soon as it cannot prove that it
 * still does. Stands for election until `signal` aborts, then ends the work and gives the lease back.
 */
export async function lead(
  options: LeaderOptions,
  work: (epoch: number, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { store, clock, logger, lease, holder, ttlMs } = options;
  let term: { epoch: number; end: AbortController; work: Promise<void>; provenAt: number } | null = null;
  const endTerm = async (): Promise<void> => {
    const ending = term;
    term = null;
    ending?.end.abort();
    await ending?.work;
  };
  while (!signal.aborted) {
    const askedAt = clock.now().getTime();
    const epoch = await acquireLease(store, { name: lease, holder, ttlMs }).catch((error: unknown) => {
      logger.warn({ err: error, lease }, 'lease not renewed');
      return undefined;
    });
    if (term && (epoch === null || clock.now().getTime() - term.provenAt >= ttlMs)) {
      logger.warn({ lease, epoch: term.epoch }, 'leadership lost');
      await endTerm();
    }
    if (typeof epoch === 'number') {
      if (term && term.epoch !== epoch) await endTerm();
      if (term) term.provenAt = askedAt;
      else {
        logger.info({ lease, epoch }, 'leading');
        const end = new AbortController();
        term = { epoch, end, work: work(epoch, end.signal), provenAt: askedAt };
      }
    }
    await clock.sleep(ttlMs / 3, signal).catch(() => undefined);
  }
  await endTerm();
  await releaseLease(store, { name: lease, holder }).catch(() => undefined);
}
