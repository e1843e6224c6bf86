import { ProblemError } from '@millrace/contract';
import { writeAudit } from './audit.ts';
import { type Database } from './db.ts';
import { eachOfPages } from './each.ts';
import { eraseSettings } from './erasure.ts';
import { underLegalHold } from './legal-holds.ts';
import { moveVideo } from './video-moves.ts';

const erasing =
  'account_id in (select id from accounts where erased_at is not null and erasure_done_at is null)';
/** Longer than any request runs that was admitted before the erasure began. */
const overAfter = `interval '5 minutes'`;
/** Videos deleted at once; each takes a connection. */
const atOnce = 4;

/**
 * Deletes every video of erased accounts, and forgets what was written of them; their objects go as those of any
 * deleted video. Under a legal hold both stay until it is lifted. Closes erasures of which no object is left.
 * @param limit how many are looked up by one statement
 * @returns how many videos were deleted or forgotten, and erasures closed
 * @throws AggregateError when videos could not be deleted, after all the rest
 */
export async function eraseVideos(db: Database, signal: AbortSignal, limit = 200): Promise<number> {
  const deleting = deleteVideos(db, signal, limit);
  let done = await deleting.catch(() => 0);
  for (let forgotten = 1; forgotten > 0 && !signal.aborted; done += forgotten)
    forgotten = await forgetVideos(db, limit);
  if (!signal.aborted) done += await closeErasures(db);
  // Those that could not be deleted are told of after all the rest.
  await deleting;
  return done;
}

/** In one run, however many there are: they must not play on until the next. */
function deleteVideos(db: Database, signal: AbortSignal, limit: number): Promise<number> {
  const page = async (after: string): Promise<{ id: string }[]> => {
    const { rows } = await db.query<{ id: string }>(
      `select id from videos where ${erasing} and deleted_at is null and id > $2 order by id limit $1`,
      [limit, after],
      'erasure-alive',
    );
    return rows;
  };
  return eachOfPages(page, async ({ id }) => ((await deleteVideo(db, id)) ? 1 : 0), { atOnce, signal });
}

/** @returns false when somebody else deleted it meanwhile */
const deleteVideo = (db: Database, id: string): Promise<boolean> =>
  db
    .transaction((tx) => moveVideo(tx, id, { type: 'customer_delete' }, { deletedBy: 'erasure' }))
    .then(({ moved }) => moved)
    .catch((error: unknown) => {
      if (error instanceof ProblemError && error.code === 'not_found') return false;
      throw error;
    });

/**
 * Forgets what customers and the team wrote of deleted videos, and what encoders read in their files or quoted of them.
 * A title is never empty before: an empty one says that all of it is forgotten.
 */
async function forgetVideos(db: Database, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `with gone as (
       select id from videos v where ${erasing} and deleted_at is not null and title <> ''
         and not ${underLegalHold('v.id')}
         -- Holds of a restored record may still be on their way back.
         and not exists (select from record_state where holds_wanted)
       limit $1
     ), jobs as (
       update encode_jobs set manifest = null, report = '{}', trace = '{}' where video_id in (select id from gone)
       returning id
     ), tasks as (
       update encode_tasks set last_error = null where job_id in (select id from jobs) returning id
     ), outputs as (
       update task_outputs set output = '{}' where task_id in (select id from tasks)
     ), files as (
       update uploads set file_name = null where video_id in (select id from gone)
     ), texts as (
       delete from captions where video_id in (select id from gone)
     ), holds as (
       -- A copy that stands is written anew, without it.
       update video_holds set reason = null, copied_at = case when lifted_at is not null then copied_at end
       where video_id in (select id from gone) and reason is not null
     )
     update videos set title = '', failure_message = case when failure_code is not null then '' end
     where id in (select id from gone)`,
    [limit],
    'erasure-forget',
  );
  return rowCount;
}

const closeErasures = (db: Database): Promise<number> =>
  db.transaction(async (tx) => {
    const { rows: open } = await tx.query<{ id: string }>(
      'select id from accounts where erased_at is not null and erasure_done_at is null',
    );
    if (open.length === 0) return 0;
    const ids = open.map(({ id }) => id);
    await eraseSettings(tx, ids);
    const { rows } = await tx.query<{ id: string }>(
      `update accounts a set erasure_done_at = clock_timestamp()
       where id = any($1) and erasure_done_at is null and erased_at < clock_timestamp() - ${overAfter}
         and not exists (select from videos v
           where v.account_id = a.id and (v.deleted_at is null or v.purged_at is null or title <> ''))
       returning id`,
      [ids],
    );
    for (const { id } of rows)
      await writeAudit(tx, { actor: 'reconciler', action: 'account.erased', subject: id });
    return rows.length;
  });
