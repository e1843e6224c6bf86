import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { silentLogger } from './logger.ts';
import { createMetrics } from './metrics.ts';
import { createOpsServer, type OpsServer } from './ops-server.ts';
import { type Health } from './service.ts';

let health: Health;
let ops: OpsServer;
let base: string;
const metrics = createMetrics({ service: 'test' });

beforeAll(async () => {
  const service = { health: () => health };
  ops = createOpsServer({ service, metrics, host: '127.0.0.1', port: 0, logger: silentLogger });
  base = `http://127.0.0.1:${(await ops.listen()).port}`;
});
afterAll(() => ops.close());

describe('the operations port', () => {
  it.each([
    [{ healthy: true, ready: true }, 200, 200],
    [{ healthy: true, ready: false }, 200, 503],
    [{ healthy: false, ready: true }, 503, 200],
  ])('answers %j with %i on /health and %i on /ready', async (state, onHealth, onReady) => {
    health = { ...state, checks: { loop: 'is stuck' } };
    const asked = await fetch(`${base}/health?x=1`);
    expect(asked.status).toBe(onHealth);
    expect(await asked.json()).toEqual({
      status: onHealth === 200 ? 'ok' : 'failing',
      checks: health.checks,
    });
    expect((await fetch(`${base}/ready`)).status).toBe(onReady);
    const scraped = await (await fetch(`${base}/metrics`)).text();
    expect(scraped).toContain(`millrace_ready{service="test"} ${state.ready ? 1 : 0}`);
  });

  it('serves the metrics, and nothing else', async () => {
    metrics.counter('x_total', 'X.').inc();
    const scraped = await fetch(`${base}/metrics`);
    expect(scraped.headers.get('content-type')).toBe(metrics.contentType);
    expect(await scraped.text()).toContain('x_total{service="test"} 1');
    expect((await fetch(`${base}/`)).status).toBe(404);
  });
});
