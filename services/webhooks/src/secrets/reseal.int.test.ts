import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { newWebhookSecret, openWebhookSecret, parseKeySet, sealWebhookSecret } from '@millrace/domain';
import { createMetrics } from '@millrace/platform';
import { captureLogger, createManualClock } from '@millrace/testing';
import { createHarness, type Harness, type TestEndpoint } from '../testing/harness.ts';
import { resealLoop } from './reseal.ts';

const old = `old:${'o'.repeat(32)}`;
const next = `next:${'n'.repeat(32)}`;
const both = parseKeySet(`${next},${old}`);

describe('sealing signing secrets anew', () => {
  let harness: Harness;
  let endpoint: TestEndpoint;
  beforeAll(async () => {
    harness = await createHarness();
  });
  afterAll(() => harness.close());
  beforeEach(async () => {
    await harness.store.query('delete from webhook_endpoints');
    endpoint = await harness.addEndpoint('https://a.example/hook');
  });

  const put = (secret: string, keys: string): Promise<unknown> =>
    harness.store.query('update webhook_endpoints set secret = $2 where id = $1', [
      endpoint.endpointId,
      sealWebhookSecret(secret, endpoint.endpointId, parseKeySet(keys)),
    ]);
  const sealed = async (): Promise<string> =>
    (
      await harness.store.query<{ secret: string }>('select secret from webhook_endpoints where id = $1', [
        endpoint.endpointId,
      ])
    ).rows[0]?.secret ?? '';

  /** One run of the loop. */
  async function run(keys = both, store = harness.store): Promise<{ metrics: string; log: string }> {
    const [metrics, log, stop] = [
      createMetrics({ service: 'webhooks' }),
      captureLogger(),
      new AbortController(),
    ];
    const loop = resealLoop({ keys, store, clock: createManualClock(), logger: log.logger, metrics });
    const { promise: done, resolve } = Promise.withResolvers<undefined>();
    const running = loop.run(stop.signal, () => resolve(undefined));
    await Promise.race([done, running]);
    stop.abort();
    await running;
    return { metrics: await metrics.render(), log: log.text() };
  }
  const left = (readable: boolean): RegExp =>
    new RegExp(`millrace_webhook_secrets_old_key\\{readable="${readable}",service="webhooks"\\} 1`);

  it('lets the old key be retired: the same secret opens with the new one alone', async () => {
    const secret = newWebhookSecret();
    await put(secret, old);
    const { metrics } = await run();
    expect(openWebhookSecret(await sealed(), endpoint.endpointId, parseKeySet(next))).toBe(secret);
    expect(metrics).not.toMatch(left(true));
    // And what is sealed so is left alone.
    const before = await sealed();
    await run();
    expect(await sealed()).toBe(before);
  });

  it('leaves a secret as it is whose key is not in the set, and says so without it', async () => {
    const secret = newWebhookSecret();
    await put(secret, `lost:${'l'.repeat(32)}`);
    const before = await sealed();
    const { metrics, log } = await run();
    expect(await sealed()).toBe(before);
    expect(metrics).toMatch(left(false));
    expect(log).toContain(endpoint.endpointId);
    // One line, however many there are.
    expect(log.match(/cannot be read/g)).toHaveLength(1);
    expect(log).not.toContain(secret);
  });

  it('does not put an old secret in the place of one that was rotated meanwhile', async () => {
    await put(newWebhookSecret(), old);
    const rotated = newWebhookSecret();
    let turns = 0;
    const store = {
      ...harness.store,
      query: async (...args: Parameters<typeof harness.store.query>) => {
        const answer = await harness.store.query(...args);
        // After it was read, before it is written.
        if (turns++ === 0) await put(rotated, old);
        return answer;
      },
    } as typeof harness.store;
    expect((await run(both, store)).metrics).toMatch(left(true));
    expect(openWebhookSecret(await sealed(), endpoint.endpointId, both)).toBe(rotated);
  });
});
