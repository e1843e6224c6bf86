import { systemClock } from '@millrace/platform';
import { waitFor } from '@millrace/testing';
import { type ReceiverProcess } from './webhook-receiver-process.ts';
import { type BenchEndpoint, type BenchRecord } from './webhook-record.ts';

interface Stage {
  record: BenchRecord;
  receiver: ReceiverProcess;
}

/** The 99th percentile of the latency in milliseconds, of each round. */
export interface Latencies {
  alone: number[];
  beside: number[];
}

/** Far from what the machine can do, as in daily use. */
const endpoints = 50;
const everyMs = 100;
/** Of each endpoint in each interval. */
const warmUpTicks = 20;

export async function measureFairness(
  stage: Stage,
  { seconds, rounds }: { seconds: number; rounds: number },
): Promise<Latencies> {
  const targets: BenchEndpoint[] = [];
  for (let i = 0; i < endpoints; i++)
    targets.push(await stage.record.addEndpoint(`${stage.receiver.url}/${i}`));
  const hanging = await stage.record.addEndpoint(`${stage.receiver.url}/hang`);
  const latencies: Latencies = { alone: [], beside: [] };
  const service = await stage.record.startService();
  try {
    for (let round = 0; round < rounds; round++) {
      latencies.alone.push(await pace(stage, targets, seconds));
      latencies.beside.push(await pace(stage, [...targets, hanging], seconds));
      await stage.record.store.query(
        `with waiting as (delete from webhook_queue where endpoint_id = $1)
         delete from webhook_deliveries where endpoint_id = $1`,
        [hanging.endpointId],
      );
    }
  } finally {
    await service.stop();
  }
  return latencies;
}

/** An event for each target at every tick; the latency of those that arrive, in milliseconds. */
async function pace(
  { record, receiver }: Stage,
  targets: readonly BenchEndpoint[],
  seconds: number,
): Promise<number> {
  const ticks = warmUpTicks + (seconds * 1_000) / everyMs;
  const startedAt = performance.now();
  let arrived: number[] = [];
  for (let tick = 0; tick < ticks; tick++) {
    await systemClock.sleep(Math.max(0, startedAt + tick * everyMs - performance.now()));
    if (tick === warmUpTicks) await receiver.report();
    await record.addDeliveries(targets);
  }
  await waitFor(
    async () => {
      arrived = arrived.concat((await receiver.report()).latencies);
      return arrived.length >= endpoints * (ticks - warmUpTicks);
    },
    { timeoutMs: 30_000, what: 'the last deliveries' },
  );
  return percentile(arrived, 0.99);
}

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
