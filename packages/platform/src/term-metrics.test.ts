import { describe, expect, it } from '@jest/globals';
import { createMetrics } from './metrics.ts';
import { createTermMetrics } from './term-metrics.ts';

describe('the metrics of a term', () => {
  it('end with it: its gauges are gone, what counts and what others show stay', async () => {
    const metrics = createMetrics({ service: 'reconciler' });
    const loops = metrics.gauge('loops', 'Loops.', ['loop']);
    loops.set(1, { loop: 'of-the-process' });
    const shown = async (): Promise<string[]> =>
      [...(await metrics.render()).matchAll(/^(\w+)\{(?:loop="([\w-]+)",)?service.* (\d+)$/gm)].map((found) =>
        found.slice(1).filter(Boolean).join(' '),
      );

    const term = createTermMetrics(metrics);
    const own = term.metrics.gauge('loops', 'Loops.', ['loop']);
    own.set(2, { loop: 'of-the-leader' });
    term.metrics.gauge('waiting', 'What waits.').set(3);
    term.metrics.gauge('unset', 'Not set yet.');
    term.metrics.observe('queue', 'The queue.', () => 4);
    term.metrics.counter('done_total', 'Done.').inc();
    expect(await shown()).toEqual([
      ...[
        'loops of-the-process 1',
        'loops of-the-leader 2',
        'waiting 3',
        'unset 0',
        'queue 4',
        'done_total 1',
      ],
    ]);

    term.end();
    const left = ['loops of-the-process 1', 'done_total 1'];
    expect(await shown()).toEqual(left);
    // What is late shows nothing any more, and the next term begins anew.
    own.set(5, { loop: 'of-the-leader' });
    expect(await shown()).toEqual(left);
    createTermMetrics(metrics).metrics.observe('queue', 'The queue.', () => 6);
    expect(await shown()).toEqual([...left, 'queue 6']);
  });
});
