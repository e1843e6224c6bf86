import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type WebhookDelivery, type WebhookEndpoint } from '@millrace/contract';
import { claimDeliveries, deleteEndpoint, finishAttempts, purgeWebhookLog } from '@millrace/store';
import { waitFor } from '@millrace/testing';
import { type Answer, createTenant, createTestApi, type Tenant, type TestApi } from '../testing/test-api.ts';

let api: TestApi;
let me: Tenant;

beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  me = await createTenant(api);
});

const path = (): string => `/v1/projects/${me.projectId}/webhook-endpoints`;
const create = async (): Promise<WebhookEndpoint> => {
  const body = { url: 'https://hooks.example.com/in', events: ['video.ready'] };
  return (await api.ask<WebhookEndpoint>(`POST ${path()}`, { bearer: me.full, body })).body;
};
const post = <Body>(rest: string): Promise<Answer<Body>> =>
  api.ask<Body>(`POST ${path()}/${rest}`, { bearer: me.full });
const statuses = async ({ id }: WebhookEndpoint): Promise<string[]> => {
  const { rows } = await api.store.query<{ status: string }>(
    'select status from webhook_deliveries where endpoint_id = $1 order by created_at, id',
    [id],
  );
  return rows.map(({ status }) => status);
};
const claimOne = async ({ id }: WebhookEndpoint) => {
  const worker = { name: 'test', boot: 'one' };
  const request = { worker, leaseMs: 60_000, after: '', limit: 500, doubtfulLimit: 500 };
  const { deliveries } = await claimDeliveries(api.store, request);
  const claim = deliveries.find(({ endpointId }) => endpointId === id);
  if (claim === undefined) throw new Error('nothing was claimed');
  return claim;
};
/** How many connections wait for a lock. */
async function waiting(): Promise<number> {
  const { rowCount } = await api.store.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rowCount;
}

describe('deleting a webhook endpoint', () => {
  it('takes its secret out of the record', async () => {
    const { id } = await create();
    await api.ask(`DELETE ${path()}/${id}`, { bearer: me.full });
    const { rows } = await api.store.query('select secret from webhook_endpoints where id = $1', [id]);
    expect(rows).toEqual([{ secret: '' }]);
  });

  it('leaves what is under way failed, however that ends, and never due again [WHD-104]', async () => {
    const endpoint = await create();
    await post(`${endpoint.id}/test`);
    const claim = await claimOne(endpoint);
    await api.ask(`DELETE ${path()}/${endpoint.id}`, { bearer: me.full });
    await finishAttempts(api.store, [
      { claim, status: 'pending', waitMs: 0, durationMs: 1, lastStatus: 500, lastError: 'no' },
    ]);
    const { rows } = await api.store.query(
      `select status, attempts, next_attempt_at as next from webhook_deliveries where endpoint_id = $1`,
      [endpoint.id],
    );
    expect(rows).toEqual([{ status: 'failed', attempts: 1, next: null }]);
  });

  it.each(['test', 'redeliver'])(
    'lets nothing be queued at the same moment by %s [WHE-209]',
    async (what) => {
      const endpoint = await create();
      const { body: delivery } = await post<WebhookDelivery>(`${endpoint.id}/test`);
      const rest = what === 'test' ? 'test' : `deliveries/${delivery.id}/redeliver`;
      let rival: Promise<Answer> | undefined;
      await api.store.transaction(async (tx) => {
        await deleteEndpoint(tx, { projectId: me.projectId, endpointId: endpoint.id });
        rival = post(`${endpoint.id}/${rest}`);
        await waitFor(async () => (await waiting()) > 0);
      });
      expect((await rival)?.status).toBe(404);
      expect(await statuses(endpoint)).toEqual(['failed']);
    },
  );

  it('happens with its project [WHD-104]', async () => {
    const endpoint = await create();
    await post(`${endpoint.id}/test`);
    const { status } = await api.ask(`DELETE /v1/projects/${me.projectId}`, { cookie: me.cookie });
    expect([status, await statuses(endpoint)]).toEqual([204, ['failed']]);
  });
});

describe('a deleted endpoint', () => {
  const age = async ({ id }: WebhookEndpoint, interval: string): Promise<void> => {
    await api.store.query(
      'update webhook_endpoints set deleted_at = clock_timestamp() - $2::interval where id = $1',
      [id, interval],
    );
  };
  const purge = (): Promise<number> => purgeWebhookLog(api.store, new AbortController().signal);
  const known = async (): Promise<string[]> => {
    const { rows } = await api.store.query<{ id: string }>(
      'select id from webhook_endpoints where project_id = $1',
      [me.projectId],
    );
    return rows.map(({ id }) => id).sort();
  };

  it('is forgotten after 30 days, with what its breaker knew, once nothing of its log is left', async () => {
    const [old, young, logged, alive] = [await create(), await create(), await create(), await create()];
    await post(`${logged.id}/test`);
    for (const { id } of [old, young, logged]) {
      await api.ask(`DELETE ${path()}/${id}`, { bearer: me.full });
    }
    await api.store.query('insert into webhook_breakers (endpoint_id, failures) values ($1, 9), ($2, 9)', [
      ...[old.id, young.id],
    ]);
    await age(old, '30 days 1 minute');
    await age(logged, '30 days 1 minute');
    await age(young, '29 days');
    expect(await purge()).toBe(1);
    expect(await known()).toEqual([young.id, logged.id, alive.id].sort());
    const { rows } = await api.store.query(
      'select endpoint_id as id from webhook_breakers where endpoint_id = any ($1)',
      [[old.id, young.id]],
    );
    expect(rows).toEqual([{ id: young.id }]);
    expect(await purge()).toBe(0);
  });
});
