import { describe, expect, it } from '@jest/globals';
import { captureLogger, createManualClock } from '@millrace/testing';
import { type Loop, repeatEvery, superviseLoops } from './loops.ts';
import { createMetrics } from './metrics.ts';

const setUp = (loops: readonly Loop[]) => {
  const clock = createManualClock();
  const metrics = createMetrics({ service: 'test' });
  const log = captureLogger();
  return { clock, metrics, log, supervisor: superviseLoops(loops, { clock, logger: log.logger, metrics }) };
};
const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve()));

describe('superviseLoops', () => {
  it('shows a failed loop red while its siblings go on, and green once it works again', async () => {
    let starts = 0;
    const worked = Promise.withResolvers<undefined>();
    const flaky: Loop = {
      name: 'flaky',
      run: async (signal, done) => {
        starts++;
        if (starts < 3) throw new Error(`broken ${starts}`);
        done();
        worked.resolve(undefined);
        await untilAborted(signal);
      },
    };
    const steady: Loop = { name: 'steady', run: (signal) => untilAborted(signal) };
    const { supervisor, clock, log, metrics } = setUp([flaky, steady]);
    supervisor.start();
    await clock.whenSleeping();
    expect(supervisor.checks()).toEqual({ flaky: 'broken 1', steady: 'ok' });
    await clock.advance(499);
    expect(starts).toBe(1);
    await clock.advance(1);
    expect(supervisor.checks()['flaky']).toBe('broken 2');
    await clock.advance(999);
    expect(starts).toBe(2);
    await clock.advance(1);
    await worked.promise;
    expect(supervisor.checks()).toEqual({ flaky: 'ok', steady: 'ok' });
    expect(log.lines.filter(({ message }) => message === 'loop failed')).toHaveLength(2);
    const text = await metrics.render();
    expect(text).toContain('millrace_loop_failures_total{loop="flaky",service="test"} 2');
    expect(text).toContain('millrace_loop_last_success_timestamp_seconds{loop="flaky",service="test"}');
    await supervisor.stop();
  });

  it('counts a loop that ends by itself as failed', async () => {
    const { supervisor, clock } = setUp([{ name: 'short', run: () => Promise.resolve() }]);
    supervisor.start();
    await clock.whenSleeping();
    expect(supervisor.checks()['short']).toBe('the loop ended by itself');
    await supervisor.stop();
  });

  it('waits 30 seconds at most', async () => {
    let starts = 0;
    const broken: Loop = { name: 'broken', run: () => Promise.reject(new Error(String(++starts))) };
    const { supervisor, clock } = setUp([broken]);
    supervisor.start();
    await clock.whenSleeping();
    await clock.advance(10 * 60_000);
    const before = starts;
    await clock.advance(30_000);
    expect(starts).toBe(before + 1);
    await supervisor.stop();
  });

  it('stops what runs and what waits, and tells no failure of that', async () => {
    const stubborn: Loop = {
      name: 'stubborn',
      run: async (signal) => {
        await untilAborted(signal);
        throw new Error('stopped badly');
      },
    };
    const broken: Loop = { name: 'broken', run: () => Promise.reject(new Error('no')) };
    const { supervisor, clock, log } = setUp([stubborn, broken]);
    supervisor.start();
    await clock.whenSleeping();
    await supervisor.stop();
    expect(supervisor.checks()['stubborn']).toBe('ok');
    expect(log.lines.filter(({ fields }) => fields['loop'] === 'stubborn')).toEqual([]);
  });
});

describe('repeatEvery', () => {
  it('works, rests and works again, until it is aborted', async () => {
    const clock = createManualClock();
    const stopping = new AbortController();
    let done = 0;
    let works = 0;
    const running = repeatEvery(1_000, clock, () => {
      works++;
    })(stopping.signal, () => done++);
    await clock.whenSleeping();
    expect([works, done]).toEqual([1, 1]);
    await clock.advance(999);
    expect(works).toBe(1);
    await clock.advance(1);
    expect([works, done]).toEqual([2, 2]);
    stopping.abort();
    await running;
    expect(works).toBe(2);
  });

  it('ends with what its work throws, which is not done then', async () => {
    let done = 0;
    const run = repeatEvery(1_000, createManualClock(), () => Promise.reject(new Error('broken')));
    await expect(run(new AbortController().signal, () => done++)).rejects.toThrow('broken');
    expect(done).toBe(0);
  });
});
