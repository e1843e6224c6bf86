import { randomUUID } from 'node:crypto';
import { type Bus } from '@millrace/bus';
import { deadTopic, topics } from '@millrace/contract';
import { type ObjectStore, type Page } from '@millrace/objects';
import { type Queryable } from '@millrace/store';
import { waitFor } from '@millrace/testing';
import { copyHeader } from './messages.ts';

/** What the record, the bucket and the bus hold, as data. */
export interface World extends RecordKept {
  objects: { key: string; bytes: number }[];
  multiparts: { key: string; uploadId: string }[];
  /** Messages that a group has not committed, by `group topic`. */
  lag: Map<string, number>;
  /** Messages in the dead twin of each topic. */
  dead: Map<string, number>;
}

/** What the record holds. */
export interface RecordKept {
  videos: {
    id: string;
    status: string;
    deleted: boolean;
    purged: boolean;
    failureCode: string | null;
    indexKey: string | null;
    durationMs: number | null;
    jobId: string | null;
  }[];
  uploads: { id: string; videoId: string; state: string; storeUploadId: string }[];
  jobs: { id: string; videoId: string; state: string }[];
  tasks: { id: string; videoId: string; status: string; failures: number; losses: number }[];
  /** Objects that the winning attempts of a job wrote. */
  outputs: { jobId: string; prefix: string; files: { key: string; bytes: number }[] }[];
  prefixes: { prefix: string; videoId: string; kind: string; doomed: boolean; swept: boolean }[];
  events: { id: string; type: string; videoId: string | null; body: string }[];
  endpoints: { id: string; events: string[] }[];
  deliveries: { id: string; endpointId: string; eventId: string; status: string; attempts: number }[];
  /** Deliveries that wait or are under way. */
  queued: { deliveryId: string; where: 'queue' | 'claims' }[];
  outbox: { topic: string; key: string; heartbeat: boolean; parked: boolean; lastError: string | null }[];
  usage: { accountId: string; storedMs: number; uploadMs: number; watchedMs: number }[];
  reservations: { accountId: string; videoId: string; kind: string; amountMs: number; standing: boolean }[];
  watched: { accountId: string; videoId: string; segments: number[] }[];
}

/** Groups that share the work on a topic. Each CDN process has one of its own for the playback state. */
const groups = [
  ['encoder', topics.encodeTasks.name],
  ['webhooks', topics.videoEvents.name],
  ['usage', topics.playbackUsage.name],
  ['confirmations', topics.playbackConfirmations.name],
] as const;

/** Reads the record, within a transaction where one is given. */
export async function readRecord(db: Queryable): Promise<RecordKept> {
  const all = async <Row>(text: string): Promise<Row[]> => (await db.query<Row>(text)).rows;
  const outputs = await all<{ jobId: string; prefix: string; output: StoredOutput }>(
    `select t.job_id as "jobId", o.prefix, o.output from task_outputs o join encode_tasks t on t.id = o.task_id`,
  );
  const watched = await all<{ accountId: string; videoId: string; bitmap: Buffer }>(
    `select account_id as "accountId", video_id as "videoId", segments as bitmap from playback_views`,
  );
  return {
    videos: await all(
      `select id, status, deleted_at is not null as deleted, purged_at is not null as purged,
         failure_code as "failureCode", index_key as "indexKey", duration_ms as "durationMs",
         current_job_id as "jobId" from videos`,
    ),
    uploads: await all(
      `select id, video_id as "videoId", state, store_upload_id as "storeUploadId" from uploads`,
    ),
    jobs: await all(`select id, video_id as "videoId", state from encode_jobs`),
    tasks: await all(`select id, video_id as "videoId", status, failures, losses from encode_tasks`),
    outputs: outputs.map(({ output, ...row }) => ({ ...row, files: filesOf(output) })),
    prefixes: await all(
      `select prefix, video_id as "videoId", kind, delete_after is not null as doomed,
         purged_at is not null as swept from object_prefixes`,
    ),
    events: await all(
      `select id, type, video_id as "videoId", convert_from(body, 'UTF8') as body from events`,
    ),
    endpoints: await all(`select id, events from webhook_endpoints where deleted_at is null`),
    deliveries: await all(
      `select id, endpoint_id as "endpointId", event_id as "eventId", status, attempts from webhook_deliveries
       where redelivery_of is null`,
    ),
    queued: await all(
      `select delivery_id as "deliveryId", 'queue' as where from webhook_queue
       union all select delivery_id, 'claims' from webhook_claims`,
    ),
    outbox: await all(
      `select topic, key, partition is not null as heartbeat, parked_at is not null as parked,
         last_error as "lastError" from outbox`,
    ),
    usage: await all(
      `select account_id as "accountId", stored_ms as "storedMs", upload_ms as "uploadMs",
         watched_ms as "watchedMs" from usage`,
    ),
    reservations: await all(
      `select account_id as "accountId", video_id as "videoId", kind, amount_ms as "amountMs",
         released_at is null as standing from usage_reservations`,
    ),
    watched: watched.map(({ bitmap, ...row }) => ({ ...row, segments: segmentsOf(bitmap) })),
  };
}

/** Reads what lies in the bucket. */
export async function readBucket(objects: ObjectStore): Promise<Pick<World, 'objects' | 'multiparts'>> {
  const stored = await every((after) => objects.list('', after));
  return {
    objects: stored.map(({ key, sizeBytes }) => ({ key, bytes: sizeBytes })),
    multiparts: await every((after) => objects.listUploads(after)),
  };
}

/** Reads what waits on the bus. */
export async function readLag(bus: Bus): Promise<World['lag']> {
  const lag: World['lag'] = new Map();
  for (const [group, topic] of groups) {
    const messages = [...(await bus.lag(group, topic)).values()];
    lag.set(
      `${group} ${topic}`,
      messages.reduce((total, each) => total + each, 0),
    );
  }
  return lag;
}

/** Counts what nobody could read. */
export async function countDead(bus: Bus): Promise<World['dead']> {
  const dead: World['dead'] = new Map();
  for (const { name } of Object.values(topics)) dead.set(name, (await readDead(bus, name)).size);
  return dead;
}

/** Messages that died. One whose burial or copying was interrupted may lie there twice: it is known by its place. */
async function readDead(bus: Bus, topic: string): Promise<Set<string>> {
  const [group, dead] = [`reads-the-dead-${randomUUID()}`, deadTopic(topic)];
  const places = new Set<string>();
  const concurrency = await bus.partitions(dead);
  const subscription = await bus.subscribe(
    group,
    dead,
    ({ headers }) => {
      const place = `${headers['millrace-dead-partition'] ?? ''} ${headers['millrace-dead-offset'] ?? ''}`;
      const original = headers[copyHeader];
      places.add(original === undefined ? place : `copy of ${original}`);
      return Promise.resolve();
    },
    { concurrency },
  );
  const isRead = async (): Promise<boolean> =>
    [...(await bus.lag(group, dead)).values()].every((messages) => messages === 0);
  await waitFor(isRead, { timeoutMs: 60_000, what: `the dead of ${topic}` });
  await subscription.close();
  return places;
}

interface StoredOutput {
  tracks?: { key: string; bytes: number }[];
  files?: { key: string; bytes: number }[];
}

const filesOf = ({ tracks = [], files = [] }: StoredOutput): { key: string; bytes: number }[] =>
  [...tracks, ...files].map(({ key, bytes }) => ({ key, bytes }));

const segmentsOf = (bitmap: Buffer): number[] =>
  [...bitmap].flatMap((byte, at) =>
    [0, 1, 2, 3, 4, 5, 6, 7].filter((bit) => (byte & (1 << bit)) !== 0).map((bit) => 8 * at + bit),
  );

async function every<T>(page: (after?: string) => Promise<Page<T>>): Promise<T[]> {
  const items: T[] = [];
  for (let next: string | null | undefined; next !== null;) {
    const one: Page<T> = await page(next);
    items.push(...one.items);
    next = one.next;
  }
  return items;
}
