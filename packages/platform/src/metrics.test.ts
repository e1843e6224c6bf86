import { describe, expect, it } from '@jest/globals';
import { createMetrics } from './metrics.ts';

describe('createMetrics', () => {
  it('renders counters, gauges and histograms with their labels and service', async () => {
    const metrics = createMetrics({ service: 'api' });
    metrics.counter('jobs_total', 'Jobs.', ['kind']).inc({ kind: 'a' });
    metrics.counter('jobs_total', 'Jobs.', ['kind']).inc({ kind: 'a' }, 2);
    metrics.gauge('depth', 'Depth.').set(4);
    metrics.histogram('wait_seconds', 'Wait.', [1, 5]).observe(2);
    const text = await metrics.render();
    expect(text).toContain('jobs_total{kind="a",service="api"} 3');
    expect(text).toContain('depth{service="api"} 4');
    expect(text).toMatch(/wait_seconds_bucket\{le="1",service="api"\} 0/);
    expect(text).toMatch(/wait_seconds_bucket\{le="5",service="api"\} 1/);
    expect(text).not.toContain('process_cpu');
    expect(metrics.contentType).toContain('text/plain');
  });

  it('reads an observed gauge at each scrape, the last reader counting', async () => {
    const metrics = createMetrics({ service: 'api' });
    let value = 1;
    metrics.observe('level', 'Level.', () => 100);
    metrics.observe('level', 'Level.', () => value);
    expect(await metrics.render()).toContain('level{service="api"} 1');
    value = 2;
    expect(await metrics.render()).toContain('level{service="api"} 2');
  });

  it('shows a gauge no longer that was removed, cleared or not observed any more', async () => {
    const metrics = createMetrics({ service: 'api' });
    const [depth, jobs] = [metrics.gauge('depth', 'Depth.'), metrics.gauge('jobs', 'Jobs.', ['kind'])];
    const [left, right] = [{ kind: 'left' }, { kind: 'right' }];
    const shown = async (): Promise<string[]> =>
      [...(await metrics.render()).matchAll(/^(\w+)\{(?:kind="(\w+)",)?.* (\d+)$/gm)].map((found) =>
        found.slice(1).filter(Boolean).join(' '),
      );
    depth.set(1);
    jobs.set(2, left);
    jobs.set(3, right);
    const stopOld = metrics.observe('level', 'Level.', () => 4);
    const stop = metrics.observe('level', 'Level.', () => 5);
    stopOld();
    expect(await shown()).toEqual(['depth 1', 'jobs left 2', 'jobs right 3', 'level 5']);
    jobs.remove(left);
    stop();
    expect(await shown()).toEqual(['depth 1', 'jobs right 3']);
    depth.clear();
    jobs.clear();
    expect(await shown()).toEqual([]);
    depth.set(6);
    expect(await shown()).toEqual(['depth 6']);
  });

  it('keeps services apart', async () => {
    const [a, b] = [createMetrics({ service: 'a' }), createMetrics({ service: 'b', process: true })];
    a.counter('x_total', 'X.').inc();
    expect(await b.render()).not.toContain('x_total');
    expect(await b.render()).toContain('process_cpu');
  });
});
