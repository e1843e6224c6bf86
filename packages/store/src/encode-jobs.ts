import { type Quality } from '@millrace/contract';
import { newId } from '@millrace/domain';
import { type Database, type Queryable, type Transaction } from './db.ts';
import { eachOfPages } from './each.ts';
import { permit, posterPriority, type TaskKind } from './encode-permits.ts';
import { addToOutbox } from './outbox.ts';
import { limitingPlanId } from './plans.ts';

/**
 * Begins an encode of a video whose original is complete: a job, its first task (probe and plan) and a permit
 * for the encoders. The job becomes the video's current one; the move to `processing` is the caller's.
 *
 * @param headers trace context, for the job's messages from now on
 * @returns the job's id
 */
export async function createEncodeJob(
  tx: Transaction,
  {
    videoId,
    accountId,
    headers = {},
  }: { videoId: string; accountId: string; headers?: Record<string, string> },
): Promise<string> {
  const job = { id: newId('job'), videoId, accountId, trace: headers };
  await tx.query(
    'update videos set current_job_id = $2 where id = $1',
    [videoId, job.id],
    'job-make-current',
  );
  await insertJob(tx, job);
  await insertTasks(tx, job, [{ kind: 'plan', index: 0, cost: 1 }]);
  return job.id;
}

/** Inserts a running job without a task. */
export async function insertJob(
  tx: Transaction,
  { id, videoId, accountId, trace }: JobIdentity,
  { isPoster = false }: { isPoster?: boolean } = {},
): Promise<void> {
  await tx.query(
    `insert into encode_jobs (id, video_id, account_id, trace, is_poster, created_at)
     values ($1, $2, $3, $4, $5, clock_timestamp())`,
    [id, videoId, accountId, JSON.stringify(trace), isPoster],
    'job-create',
  );
}

export interface JobIdentity {
  id: string;
  videoId: string;
  accountId: string;
  trace: Record<string, string>;
}

export interface NewTask {
  kind: TaskKind;
  index: number;
  /** Estimated CPU seconds. */
  cost: number;
}

/** Inserts tasks that the job does not have yet, each with a permit. */
export async function insertTasks(
  tx: Transaction,
  job: JobIdentity,
  tasks: readonly NewTask[],
): Promise<void> {
  const rows = tasks.map((task) => ({ ...task, id: newId('tsk') }));
  const { rows: inserted } = await tx.query<{ id: string; kind: TaskKind }>(
    `insert into encode_tasks (id, job_id, video_id, account_id, kind, index, cost, priority, run_after, created_at)
     select id, $1, $2, $3, kind, index, cost, case kind when 'poster' then ${posterPriority} else 0 end,
       clock_timestamp(), clock_timestamp()
     from unnest($4::text[], $5::text[], $6::integer[], $7::real[]) as t (id, kind, index, cost)
     on conflict (job_id, kind, index) do nothing returning id, kind`,
    [
      job.id,
      job.videoId,
      job.accountId,
      rows.map((row) => row.id),
      rows.map((row) => row.kind),
      rows.map((row) => row.index),
      rows.map((row) => row.cost),
    ],
    'job-insert-tasks',
  );
  await addToOutbox(
    tx,
    inserted.map((task) => permit(task, 0, job.trace)),
  );
}

/** All that a worker needs to know of a task's job. */
export interface EncodeJob extends JobIdentity {
  /** Null until it is planned; of a job for a poster, that of the video's encode. */
  manifest: unknown;
  sourceKey: string | null;
  /** Delivery index of what plays now; null while nothing does. */
  indexKey: string | null;
  posterAtSeconds: number | null;
  /** Content type that an upload token bound the upload to. */
  boundContentType: string | null;
  maxQuality: Quality;
}

/** The job of a claimed task. */
export async function findEncodeJob(db: Queryable, jobId: string): Promise<EncodeJob | null> {
  const { rows } = await db.query<EncodeJob>(
    `select j.id, j.video_id as "videoId", j.account_id as "accountId", j.trace,
       coalesce(j.manifest, c.manifest) as manifest, v.source_key as "sourceKey", v.index_key as "indexKey",
       v.poster_at_seconds as "posterAtSeconds",
       u.bound_content_type as "boundContentType", p.max_quality as "maxQuality"
     from encode_jobs j
     join videos v on v.id = j.video_id
     join accounts a on a.id = j.account_id
     join plans p on p.id = ${limitingPlanId}
     left join encode_jobs c on c.id = v.current_job_id
     left join uploads u on u.video_id = j.video_id
     where j.id = $1`,
    [jobId],
    'job-find',
  );
  return rows[0] ?? null;
}

/** What a task's winning attempt left behind. */
export interface StoredOutput {
  kind: TaskKind;
  index: number;
  prefix: string;
  output: unknown;
}

/** Outputs of a job's finished tasks, by kind and index. */
export async function findOutputs(db: Queryable, jobId: string): Promise<StoredOutput[]> {
  const { rows } = await db.query<StoredOutput>(
    `select t.kind, t.index, o.prefix, o.output from task_outputs o join encode_tasks t on t.id = o.task_id
     where t.job_id = $1 order by t.kind, t.index`,
    [jobId],
    'job-outputs',
  );
  return rows;
}

/** The last task of a job. */
export const assembleTask: NewTask = { kind: 'assemble', index: 0, cost: 1 };

/** Locks a job until the transaction ends; null when it has ended. The video's lock comes before. */
export async function lockRunningJob(tx: Transaction, jobId: string): Promise<JobIdentity | null> {
  const { rows } = await tx.query<JobIdentity>(
    `select id, video_id as "videoId", account_id as "accountId", trace from encode_jobs
     where id = $1 and state = 'running' for no key update`,
    [jobId],
    'job-lock',
  );
  return rows[0] ?? null;
}

/**
 * Puts running jobs right whose count of open tasks disagrees with their tasks, or whose assemble task is
 * missing. For the reconciler; a level-triggered repair of what cannot happen.
 * @param options.limit how many are looked up by one statement
 * @returns how many were corrected
 * @throws AggregateError when some could not be, after all the rest
 */
export function repairJobs(
  db: Database,
  { signal, limit = 100 }: { signal?: AbortSignal; limit?: number } = {},
): Promise<number> {
  const page = async (after: string): Promise<{ id: string }[]> => {
    const { rows } = await db.query<{ id: string }>(
      // Materialized: of 90,000 jobs, 1,000 of them running, all were read in the order of the primary key.
      `with running as materialized (
         select id, remaining from encode_jobs where state = 'running' and manifest is not null)
       select j.id from running j
       cross join lateral (
         select count(*) filter (where t.kind in ('video', 'audio', 'images') and t.status <> 'done') as open,
           count(*) filter (where t.kind = 'assemble') as assembles
         from encode_tasks t where t.job_id = j.id
       ) counted
       where j.id > $2
         and (j.remaining <> counted.open or (counted.open = 0 and counted.assembles = 0))
       order by j.id limit $1`,
      [limit, after],
      'job-crooked',
    );
    return rows;
  };
  return eachOfPages(page, ({ id }) => db.transaction((tx) => repairJob(tx, id)), { signal });
}

async function repairJob(tx: Transaction, id: string): Promise<number> {
  const job = await lockRunningJob(tx, id);
  if (!job) return 0;
  const { rows: counted } = await tx.query<{ remaining: number }>(
    `update encode_jobs j set remaining = c.open from (
       select count(*)::integer as open from encode_tasks t
       where t.job_id = $1 and t.kind in ('video', 'audio', 'images') and t.status <> 'done') c
     where j.id = $1 returning j.remaining`,
    [id],
    'job-recount',
  );
  if (counted[0]?.remaining === 0) await insertTasks(tx, job, [assembleTask]);
  return 1;
}
