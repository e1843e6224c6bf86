import { type ObjectStore } from '@millrace/objects';
import { type Database, type Transaction } from '@millrace/store';
import { findViolations, type Rule, type Violation } from './invariants.ts';
import { type Ledger } from './ledger.ts';
import { readBucket, readRecord, type World } from './world.ts';

/** What a violation is planted in: the record within a transaction that is rolled back, the rest as copies or undone. */
interface Ground {
  tx: Transaction;
  objects: ObjectStore;
  bus: Pick<World, 'lag' | 'dead'>;
  ledger: Ledger;
  /** A video that is ready. */
  ready: string;
  /** Puts back what was done to the bucket. */
  undo(work: () => Promise<unknown>): void;
}

interface Plant {
  rule: Rule;
  plant(ground: Ground): unknown;
}

/** One statement; `$1` is a video that is ready. */
const sql =
  (text: string): Plant['plant'] =>
  ({ tx, ready }) =>
    tx.query(text, text.includes('$1') ? [ready] : []);

const deliveryOfReady = `(select d.id from webhook_deliveries d join events e on e.id = d.event_id
  where e.video_id = $1 order by d.id limit 1)`;
const taskOfReady = `(select id from encode_tasks where video_id = $1 order by id limit 1)`;
const eventOf = async ({ tx, ready }: Ground): Promise<string> =>
  (await tx.query<{ id: string }>('select id from events where video_id = $1', [ready])).rows[0]?.id ?? '';

/** Everything that may go wrong, by what it is. */
export const plants: Readonly<Record<string, Plant>> = {
  'a video of nobody’s': {
    rule: 'each upload is a video',
    plant: sql(
      `insert into videos (id, project_id, account_id, title, status, size_bytes, created_at, updated_at)
       select 'vid_stray', project_id, account_id, title, 'uploading', 1, now(), now() from videos where id = $1`,
    ),
  },
  'an upload without a video': {
    rule: 'each upload is a video',
    plant: sql('delete from videos where id = $1'),
  },
  'a video that never ended': {
    rule: 'each video has ended as it should',
    plant: sql(`update videos set status = 'processing' where id = $1`),
  },
  'a good film that failed': {
    rule: 'each video has ended as it should',
    plant: sql(`update videos set status = 'failed', failure_code = 'invalid_file' where id = $1`),
  },
  'a film that was given up before its time': {
    rule: 'each video has ended as it should',
    plant: sql(`update videos set status = 'failed', failure_code = 'encoding_failed' where id = $1`),
  },
  'a good film that was given up after tries that failed': {
    rule: 'each video has ended as it should',
    plant: sql(
      `with tried as (update encode_tasks set failures = 3 where video_id = $1)
       update videos set status = 'failed', failure_code = 'encoding_failed' where id = $1`,
    ),
  },
  'good films that were given up, more than chance explains': {
    rule: 'each video has ended as it should',
    plant: sql(
      `with lost as (update encode_tasks set losses = 6)
       update videos set status = 'failed', failure_code = 'encoding_failed'
       where status = 'ready' and deleted_at is null`,
    ),
  },
  'a bad film that is ready': {
    rule: 'each video has ended as it should',
    plant: sql(
      `update videos set status = 'ready', failure_code = null where id = (
         select id from videos where status = 'failed' limit 1)`,
    ),
  },
  'a ready video without its index': {
    rule: 'each ready video has its objects',
    plant: sql(`update videos set index_key = 'videos/nowhere/index.json' where id = $1`),
  },
  'a ready video without one of its objects': {
    rule: 'each ready video has its objects',
    plant: async ({ tx, objects, ready, undo }) => {
      const { rows } = await tx.query<{ prefix: string }>(
        `select prefix from object_prefixes where video_id = $1 and kind = 'attempt'`,
        [ready],
      );
      const all = await Promise.all(rows.map(({ prefix }) => objects.list(prefix)));
      const key = all.flatMap(({ items }) => items).find((each) => each.key.endsWith('.mp4'))?.key ?? '';
      const { stream } = await objects.get(key);
      const body = Buffer.concat((await stream.toArray()) as Buffer[]);
      undo(() => objects.put(key, body));
      await objects.deleteMany([key]);
    },
  },
  'an end without an event': {
    rule: 'each end of a video is one event',
    plant: sql('delete from events where video_id = $1'),
  },
  'an end with two events': {
    rule: 'each end of a video is one event',
    plant: sql(
      `insert into events select 'evt_second', type, account_id, project_id, video_id, body, created_at, '{}'
       from events where video_id = $1`,
    ),
  },
  'an event that never came': {
    rule: 'each event came to each of its endpoints',
    plant: async (ground) => {
      const eventId = await eventOf(ground);
      ground.ledger.receipts = ground.ledger.receipts.filter((receipt) => receipt.eventId !== eventId);
    },
  },
  'an event that came and was refused': {
    rule: 'each event came to each of its endpoints',
    plant: async (ground) => {
      const eventId = await eventOf(ground);
      ground.ledger.receipts = ground.ledger.receipts.map((receipt) =>
        receipt.eventId === eventId ? { ...receipt, accepted: false } : receipt,
      );
    },
  },
  'a receipt of no event': {
    rule: 'each receipt is of an event',
    plant: ({ ledger }) => {
      ledger.receipts = ledger.receipts.map((each, i) => (i === 0 ? { ...each, eventId: 'evt_none' } : each));
    },
  },
  'a receipt with another body': {
    rule: 'each receipt is of an event',
    plant: ({ ledger }) => {
      ledger.receipts = ledger.receipts.map((each, i) => (i === 0 ? { ...each, body: '{}' } : each));
    },
  },
  'a receipt with a wrong signature': {
    rule: 'each receipt is of an event',
    plant: ({ ledger }) => {
      ledger.receipts = ledger.receipts.map((each, i) => (i === 0 ? { ...each, genuine: false } : each));
    },
  },
  'a delivery that the log lacks': {
    rule: 'the delivery log agrees',
    plant: sql(`delete from webhook_deliveries where id = ${deliveryOfReady}`),
  },
  'a delivery that the log has twice': {
    rule: 'the delivery log agrees',
    plant: ({ tx, ready }) =>
      tx.query('drop index webhook_deliveries_once').then(() =>
        tx.query(
          `insert into webhook_deliveries (id, endpoint_id, event_id, created_at, status, attempts)
             select 'whd_second', endpoint_id, event_id, created_at, status, attempts from webhook_deliveries
             where id = ${deliveryOfReady}`,
          [ready],
        ),
      ),
  },
  'a delivery that the log calls failed': {
    rule: 'the delivery log agrees',
    plant: sql(`update webhook_deliveries set status = 'failed' where id = ${deliveryOfReady}`),
  },
  'an attempt that the log does not count': {
    rule: 'the delivery log agrees',
    plant: sql(`update webhook_deliveries set attempts = 0 where id = ${deliveryOfReady}`),
  },
  'stored time that counts twice': {
    rule: 'stored and uploaded time count once',
    plant: sql('update usage set stored_ms = stored_ms + 4000'),
  },
  'uploaded time that counts twice': {
    rule: 'stored and uploaded time count once',
    plant: sql('update usage set upload_ms = upload_ms + 4000'),
  },
  'a stored video that holds nothing of its limit': {
    rule: 'stored and uploaded time count once',
    plant: sql(
      `with freed as (
         update usage_reservations set released_at = now() where video_id = $1 and kind = 'stored' returning amount_ms)
       update usage set stored_ms = stored_ms - (select amount_ms from freed)`,
    ),
  },
  'a failed video that holds something of its limit': {
    rule: 'stored and uploaded time count once',
    plant: sql(
      `insert into usage_reservations (video_id, kind, account_id, amount_ms, period_start, created_at)
       select id, 'stored', account_id, 0, now(), now() from videos where status = 'failed' limit 1`,
    ),
  },
  'watched time that counts twice': {
    rule: 'watched time counts once',
    plant: sql('update usage set watched_ms = watched_ms + 4000'),
  },
  'a viewer who counts as two': {
    rule: 'watched time counts once',
    plant: sql(
      `with twin as (
         insert into playback_views select 'twin' || n, 'elsewhere', $1, account_id, '\\x01', now()
         from videos, generate_series(1, 3) n where id = $1)
       update usage set watched_ms = watched_ms + 12000`,
    ),
  },
  'a segment that nobody watched': {
    rule: 'watched time counts once',
    plant: sql(`update playback_views set segments = segments || '\\xff' where video_id = $1`),
  },
  'a segment that does not count': {
    rule: 'watched time counts once',
    plant: sql('delete from playback_views where video_id = $1'),
  },
  'an object of nobody’s': {
    rule: 'no object is an orphan',
    plant: async ({ objects, undo }) => {
      const key = 'videos/vid_stray/prefix/object';
      undo(() => objects.deleteMany([key]));
      await objects.put(key, Buffer.from('stray'));
    },
  },
  'a multipart upload of nobody’s': {
    rule: 'no multipart upload is an orphan',
    plant: async ({ objects, undo }) => {
      const key = 'videos/vid_stray/prefix/source';
      const uploadId = await objects.createUpload(key);
      undo(() => objects.abort({ key, uploadId }));
    },
  },
  'a prefix that was given up and kept': {
    rule: 'no prefix is an orphan',
    plant: sql(`update object_prefixes set delete_after = now() where video_id = $1`),
  },
  'a prefix that won nothing': {
    rule: 'no prefix is an orphan',
    plant: sql(
      `insert into object_prefixes (prefix, video_id, kind, created_at)
       values ('videos/' || $1 || '/loser/', $1, 'attempt', now())`,
    ),
  },
  'a prefix of a video that is gone': {
    rule: 'no prefix is an orphan',
    plant: sql(
      `insert into object_prefixes (prefix, video_id, kind, created_at)
       select 'videos/' || id || '/left/', id, 'source', now() from videos where deleted_at is not null limit 1`,
    ),
  },
  'a deleted video whose objects are left': {
    rule: 'each deleted video is gone',
    plant: sql('update videos set purged_at = null where deleted_at is not null'),
  },
  'an upload that is being completed': {
    rule: 'no upload is stuck',
    plant: sql(`update uploads set state = 'completing' where video_id = $1`),
  },
  'a task that waits': {
    rule: 'no encode is stuck',
    plant: sql(`update encode_tasks set status = 'queued' where id = ${taskOfReady}`),
  },
  'a task that somebody has': {
    rule: 'no encode is stuck',
    plant: sql(`update encode_tasks set status = 'processing' where id = ${taskOfReady}`),
  },
  'a job that runs': {
    rule: 'no encode is stuck',
    plant: sql(`update encode_jobs set state = 'running' where video_id = $1`),
  },
  'a message that never left': {
    rule: 'the outbox is empty',
    plant: sql(
      `insert into outbox (topic, key, version, value) values ('millrace.video.events', 'left', 1, '{}')`,
    ),
  },
  'a message that was parked for no known reason': {
    rule: 'what is parked is explained',
    plant: sql(
      `insert into outbox (topic, key, version, value, parked_at, last_error)
       values ('millrace.video.events', 'parked', 1, '{}', now(), 'refused')`,
    ),
  },
  'a parked message that was dropped': {
    rule: 'what is parked is explained',
    plant: sql('delete from outbox where parked_at is not null'),
  },
  'a parked message without its reason': {
    rule: 'what is parked is explained',
    plant: sql('update outbox set last_error = null where parked_at is not null'),
  },
  'a delivery that is pending': {
    rule: 'no delivery is stuck',
    plant: sql(
      `update webhook_deliveries set status = 'pending', next_attempt_at = now() where id = ${deliveryOfReady}`,
    ),
  },
  'a delivery that was left in the queue': {
    rule: 'no delivery is stuck',
    plant: sql(
      `insert into webhook_queue select endpoint_id, now(), id, event_id, 1, false from webhook_deliveries
       where id = ${deliveryOfReady}`,
    ),
  },
  'a claim that nobody ended': {
    rule: 'no delivery is stuck',
    plant: sql(
      `insert into webhook_claims (endpoint_id, slot, delivery_id, worker, boot, started_at, lease_until, due_at,
         event_id, attempts, redelivery)
       select endpoint_id, 1, id, 'nobody', 'none', now(), now(), now(), event_id, 1, false
       from webhook_deliveries where id = ${deliveryOfReady}`,
    ),
  },
  'a message that its group never took': {
    rule: 'no message is stuck',
    plant: ({ bus }) => bus.lag.set('webhooks millrace.video.events', 1),
  },
  'a message that died': {
    rule: 'what is dead is explained',
    plant: ({ bus }) => bus.dead.set('millrace.encode.tasks', 1),
  },
  'a poisonous message that vanished': {
    rule: 'what is dead is explained',
    plant: ({ bus }) => bus.dead.set('millrace.video.events', 0),
  },
};

/** Some violations are such that the schema would refuse them. */
const withoutReferences = `
do $$
declare each record;
begin
  for each in select conrelid::regclass as of, conname from pg_constraint where contype = 'f' loop
    execute format('alter table %s drop constraint %I', each.of, each.conname);
  end loop;
end $$`;

/** What the checker finds when something is planted in a world that is well. Nothing of it stays. */
export async function findPlanted(
  { db, objects }: { db: Database; objects: ObjectStore },
  { bus, ledger, plant }: Pick<Ground, 'bus' | 'ledger'> & Pick<Plant, 'plant'>,
): Promise<Violation[]> {
  const copies = { bus: { lag: new Map(bus.lag), dead: new Map(bus.dead) }, ledger: { ...ledger } };
  const undoing: (() => Promise<unknown>)[] = [];
  const undo = (work: () => Promise<unknown>): unknown => undoing.push(work);
  let found: Violation[] = [];
  const work = async (tx: Transaction): Promise<never> => {
    await tx.query(withoutReferences);
    const ready = await readyVideo(tx);
    await plant({ tx, objects, ready, undo, ...copies });
    const world = { ...(await readRecord(tx)), ...(await readBucket(objects)), ...copies.bus };
    found = findViolations(world, copies.ledger);
    throw new Planted();
  };
  try {
    await db.transaction(work).catch((error: unknown) => {
      if (!(error instanceof Planted)) throw error;
    });
    return found;
  } finally {
    for (const each of undoing) await each();
  }
}

/** Rolls back what was planted. */
class Planted extends Error {
  override readonly name = 'Planted';
}

async function readyVideo(tx: Transaction): Promise<string> {
  const { rows } = await tx.query<{ id: string }>(
    `select id from videos where status = 'ready' and deleted_at is null order by id limit 1`,
  );
  const [video] = rows;
  if (video === undefined) throw new Error('no video is ready');
  return video.id;
}
