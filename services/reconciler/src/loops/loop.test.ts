import { describe, expect, it } from '@jest/globals';
import { createMetrics, silentLogger } from '@millrace/platform';
import { createManualClock } from '@millrace/testing';
import { reconcileAll, repeat, type ReconcileLoop } from './loop.ts';

const logger = silentLogger;

/** A clock, and a loop that runs by it with its numbers. */
function started(make: (clock: ReturnType<typeof createManualClock>) => ReconcileLoop) {
  const clock = createManualClock();
  const metrics = createMetrics({ service: 'reconciler' });
  const stopping = new AbortController();
  const running = repeat(make(clock), { clock, logger, metrics }).run(stopping.signal, () => undefined);
  return {
    ...{ clock, now: () => clock.now().getTime() / 1000 },
    value: async (metric: string): Promise<number> => {
      const [, value] =
        new RegExp(`^${metric}{loop="things",.*} (.*)$`, 'm').exec(await metrics.render()) ?? [];
      return Number(value);
    },
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

describe('a reconcile loop', () => {
  it('counts what it cannot mend, and mends the others', async () => {
    const { clock, value, stop } = started((clock) =>
      reconcileAll(
        {
          ...{
            name: 'things',
            list: () => Promise.resolve(['bad', 'good', 'well']),
            nameOf: (key: string) => key,
          },
          observe: (key) => Promise.resolve(key),
          decide: (key) => (key === 'well' ? null : key),
          act: (key) => (key === 'bad' ? Promise.reject(new Error('denied')) : Promise.resolve(false)),
        },
        { everyMs: 60_000, clock, logger },
      ),
    );
    await clock.advance(0);
    expect(await value('millrace_reconcile_failures_total')).toBe(1);
    expect(await value('millrace_reconcile_corrections_total')).toBe(1);
    await stop();
  });

  it('shows what its last run left until the next one has ended', async () => {
    const found = [3, 0];
    const run: ReconcileLoop['run'] = (_signal, failed) => {
      for (let left = found.shift() ?? 0; left > 0; left--) failed?.();
      return Promise.resolve(0);
    };
    const { clock, value, stop } = started(() => ({ name: 'things', everyMs: 3_600_000, run }));
    await clock.advance(3_599_000);
    expect(await value('millrace_reconcile_unmended')).toBe(3);
    await clock.advance(1_000);
    expect(await value('millrace_reconcile_unmended')).toBe(0);
    await stop();
  });

  it('rests before its first run where it is told to, and shows when that is due', async () => {
    let runs = 0;
    const run = (): Promise<number> => Promise.resolve(++runs);
    const { clock, now, value, stop } = started(() => ({
      ...{ name: 'things', everyMs: 60_000, firstAfterMs: 300_000, run },
    }));
    expect(await value('millrace_reconcile_due_timestamp_seconds')).toBe(now() + 300);
    await clock.advance(299_000);
    expect(runs).toBe(0);
    await clock.advance(1_000);
    expect(runs).toBe(1);
    await clock.advance(60_000);
    expect(runs).toBe(2);
    await stop();
  });

  it('shows when it is due, and goes on showing it while a run hangs', async () => {
    let finish = (): void => undefined;
    const run = (): Promise<number> => new Promise((resolve) => (finish = () => resolve(0)));
    const { clock, now, value, stop } = started(() => ({ name: 'things', everyMs: 60_000, run }));
    const began = now();
    await clock.advance(600_000);
    expect(await value('millrace_reconcile_due_timestamp_seconds')).toBe(began);
    finish();
    await clock.advance(0);
    expect(await value('millrace_reconcile_due_timestamp_seconds')).toBe(now() + 60);
    await clock.advance(60_000);
    finish();
    await stop();
  });
});
