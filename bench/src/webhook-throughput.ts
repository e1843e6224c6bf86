import { openWebhookSecret, signWebhook, webhookKey } from '@millrace/domain';
import { waitFor } from '@millrace/testing';
import { Pool } from 'undici';
import { type ReceiverProcess } from './webhook-receiver-process.ts';
import { type BenchEndpoint, type BenchRecord, eventBody } from './webhook-record.ts';

interface Stage {
  record: BenchRecord;
  receiver: ReceiverProcess;
}

/** Deliveries a second, of each round. */
export interface Rates {
  service: number[];
  bare: number[];
  rowByRow: number[];
}

/** Row by row is slow: fewer rows tell its rate as well. */
const rowByRowShare = 0.05;

export async function measureThroughput(
  stage: Stage,
  { endpoints, events, rounds }: { endpoints: number; events: number; rounds: number },
): Promise<Rates> {
  const targets: BenchEndpoint[] = [];
  for (let i = 0; i < endpoints; i++)
    targets.push(await stage.record.addEndpoint(`${stage.receiver.url}/${i}`));
  const rates: Rates = { service: [], bare: [], rowByRow: [] };
  // One round more than asked for, which warms everything up.
  for (let round = 0; round <= rounds; round++) {
    const service = await runService(stage, targets, events);
    const bare = await runBare(stage, targets, events);
    const rowByRow = await runRowByRow(stage, targets, Math.floor(events * rowByRowShare));
    if (round === 0) continue;
    rates.service.push(service);
    rates.bare.push(bare);
    rates.rowByRow.push(rowByRow);
  }
  return rates;
}

const perSecond = (count: number, startedAt: number): number =>
  (count * 1_000) / (performance.now() - startedAt);

async function fill({ record }: Stage, targets: readonly BenchEndpoint[], events: number): Promise<void> {
  for (let left = events; left > 0; left -= targets.length) {
    await record.addDeliveries(targets.slice(0, left));
  }
  // As autovacuum would, had the rows come over hours.
  await record.store.query(
    'vacuum analyze webhook_deliveries, webhook_queue, webhook_claims, webhook_breakers',
  );
}

/** Waits until so many requests have come, and no more. */
async function expectRequests({ receiver }: Stage, count: number): Promise<void> {
  let requests = 0;
  await waitFor(
    async () => {
      requests += (await receiver.report()).requests;
      return requests >= count;
    },
    { timeoutMs: 120_000, what: 'the requests' },
  );
  if (requests > count) throw new Error(`the receiver had ${requests} requests, not ${count}`);
}

async function runService(stage: Stage, targets: readonly BenchEndpoint[], events: number): Promise<number> {
  await fill(stage, targets, events);
  const startedAt = performance.now();
  const service = await stage.record.startService();
  try {
    // The record is asked when little can be missing: asking costs it time.
    await expectRequests(stage, events);
    await waitFor(() => stage.record.isDone(), { timeoutMs: 120_000 });
    return perSecond(events, startedAt);
  } finally {
    await service.stop();
  }
}

async function runBare(stage: Stage, targets: readonly BenchEndpoint[], events: number): Promise<number> {
  // As many connections as the service may use.
  const pool = new Pool(stage.receiver.url, { connections: 2 * targets.length });
  const bodies = targets.map(({ endpointId, projectId }) => eventBody(endpointId, projectId));
  const startedAt = performance.now();
  let next = 0;
  const loop = async (): Promise<void> => {
    for (let i = next++; i < events; i = next++) {
      const place = i % targets.length;
      const { body } = await pool.request({
        ...{ method: 'POST', path: `/${place}`, headers: { 'Content-Type': 'application/json' } },
        body: bodies[place] ?? null,
      });
      await body.dump();
    }
  };
  await Promise.all(targets.flatMap(() => [loop(), loop()]));
  const rate = perSecond(events, startedAt);
  await pool.close();
  await expectRequests(stage, events);
  return rate;
}

interface Row {
  id: string;
  endpointId: string;
  url: string;
  secret: string;
  body: Buffer<ArrayBuffer>;
}

async function runRowByRow(stage: Stage, targets: readonly BenchEndpoint[], events: number): Promise<number> {
  await fill(stage, targets, events);
  const { store, keys } = stage.record;
  const startedAt = performance.now();
  for (let i = 0; i < events; i++) {
    await store.transaction(async (tx) => {
      const { rows } = await tx.query<Row>(
        `with taken as (
           delete from webhook_queue where (endpoint_id, due_at, delivery_id) = (
             select endpoint_id, due_at, delivery_id from webhook_queue limit 1 for update skip locked)
           returning *
         )
         select t.delivery_id as id, t.endpoint_id as "endpointId", e.url, e.secret, v.body from taken t
         join webhook_endpoints e on e.id = t.endpoint_id join events v on v.id = t.event_id`,
        [],
        'bench-take',
      );
      const row = rows[0];
      if (row === undefined) throw new Error('nothing to send');
      const { endpointId, url, body, secret } = row;
      const signature = signWebhook(
        webhookKey(openWebhookSecret(secret, endpointId, keys)),
        body,
        Math.floor(Date.now() / 1_000),
      );
      const headers = { 'Content-Type': 'application/json', 'Svc-Signature': signature };
      const answer = await fetch(url, { method: 'POST', body, headers });
      await answer.arrayBuffer();
      await tx.query(
        `update webhook_deliveries set status = 'delivered', attempts = attempts + 1, last_status = $2,
           last_attempt_at = now(), next_attempt_at = null where id = $1`,
        [row.id, answer.status],
        'bench-record',
      );
    });
  }
  const rate = perSecond(events, startedAt);
  await expectRequests(stage, events);
  return rate;
}
