import { type Api, createApi, type Delivery } from '../api.ts';
import { bounds } from '../objectives.ts';
import { type Scenario } from '../scenario.ts';
import { type World } from '../world.ts';

const pollMs = 1_000;
/** Beyond the bound of a first attempt, so that late ones are seen to be late. */
const patienceMs = 2 * bounds.webhookMs;

/**
 * As many `webhook.test` events for each endpoint of the project as the settings say, as fast as the API takes them:
 * that is how one customer makes the service send much. They go to a receiver that is well, beside ones that are slow or dead. Judged is
 * what reaches the one that is well.
 */
export const storm: Scenario = async (world, { endpoints }) => {
  const { webhooks } = world.settings;
  if (endpoints === null || webhooks === null) throw new Error('there is no endpoint');
  const api = createApi(world);
  const mine: string[] = [];
  for (let event = 0; event < webhooks.events; event += 1) {
    const all = [endpoints.healthy, ...endpoints.troubled];
    const [queued] = await Promise.all(all.map((id) => api.testEndpoint(id)));
    if (queued !== undefined) mine.push(queued.id);
  }
  const rows = await untilDelivered(world, api, { endpointId: endpoints.healthy, mine });
  for (const id of mine) judge(world, rows.get(id));
};

/** The rows of these deliveries by id, when all are over or patience ends. */
async function untilDelivered(
  { clock }: World,
  api: Api,
  { endpointId, mine }: { endpointId: string; mine: readonly string[] },
): Promise<Map<string, Delivery>> {
  const startedAt = clock.now();
  for (;;) {
    const rows = await readLog(api, endpointId, mine);
    const isOver = mine.every((id) => rows.get(id)?.status !== 'pending' && rows.has(id));
    if (isOver || clock.now() - startedAt > patienceMs) return rows;
    await clock.sleep(pollMs);
  }
}

/** Turns the pages of the log, newest first, until all of these were found. */
async function readLog(
  api: Api,
  endpointId: string,
  wanted: readonly string[],
): Promise<Map<string, Delivery>> {
  const rows = new Map<string, Delivery>();
  let cursor: string | null = null;
  do {
    const page = await api.listDeliveries(endpointId, cursor);
    for (const row of page.data) rows.set(row.id, row);
    cursor = page.nextCursor;
  } while (cursor !== null && !wanted.every((id) => rows.has(id)));
  return rows;
}

/** Both times are the service's own. Of a delivery that was tried again only the last try is told, which is later. */
function judge({ meter }: World, row: Delivery | undefined): void {
  const startedAt = row?.lastAttemptAt ?? null;
  const waitedMs =
    row === undefined || startedAt === null ? Infinity : Date.parse(startedAt) - Date.parse(row.createdAt);
  meter.event('webhook_in_time', waitedMs <= bounds.webhookMs);
  meter.event('webhook_delivered', row?.status === 'delivered' && row.attempts === 1);
  if (waitedMs < Infinity) meter.took('webhook_first_attempt', waitedMs);
}
