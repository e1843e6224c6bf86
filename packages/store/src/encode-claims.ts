import { type TaskClass } from '@millrace/domain';
import { type Database, type Queryable } from './db.ts';
import { lockClaims, permit, posterPriority, type TaskKind } from './encode-permits.ts';
import { shareHalfLifeSeconds } from './encode-shares.ts';
import { wantedTask } from './encode-wanted.ts';
import { type Attempt } from './object-prefixes.ts';
import { addToOutbox } from './outbox.ts';
import { limitingPlanId } from './plans.ts';

/** A task under this worker's lease. */
export interface ClaimedTask {
  id: string;
  jobId: string;
  videoId: string;
  accountId: string;
  kind: TaskKind;
  index: number;
  class: TaskClass;
  fence: number;
  /** Estimated CPU seconds. */
  cost: number;
  failures: number;
  losses: number;
  /** How long it was due and not claimed. */
  queuedMs: number;
  /** Trace context of its job, as headers; empty when that was not traced. */
  trace: Record<string, string>;
}

export const attemptOf = (task: ClaimedTask): Attempt => ({ taskId: task.id, fence: task.fence });

/** One that queued more jobs than it may run at once is served a quarter as often as one that did not. */
const bulkWeight = 4;

/**
 * The heads of all accounts' queues, best first: by priority, then the account's share of running and recent
 * work, then the job's age; within an account depth first, so that begun jobs end before more begin. An
 * account at its plan's jobs at once offers only tasks of jobs that run already. An account that was given a task
 * since another's only video was queued goes after that one (ADR 17). An account's posters are a queue of their own, of
 * which one is made at a time: before its encodes, but among accounts they go where an import would. Each account costs
 * a few index look-ups, however long its queues; the heads are tried one by one, since a join would read the whole
 * queue. Measured with 10,000 queued rows, round trips included: 1 ms when they are one account's, 3 ms when they are
 * 50 accounts'. The view `claimable_tasks` tells scalers and metrics what this may choose from; they change together.
 */
const claimStatement = `
with recursive queued (account_id) as (
  (select account_id from encode_tasks where status = 'queued' and class = $1 order by account_id limit 1)
  union all
  select (select t.account_id from encode_tasks t
          where t.status = 'queued' and t.class = $1 and t.account_id > q.account_id
          order by t.account_id limit 1)
  from queued q where q.account_id is not null
), heads as (
  select head.id, greatest(head.priority, 0) as priority, head.job_id, head.is_poster,
    open.jobs as open_jobs, s.at as served_at,
    (select j.created_at from encode_jobs j where j.id = head.job_id) as job_at,
    (running.cost + coalesce(s.recent * 0.5 ^ least(extract(epoch from statement_timestamp() - s.at) / $4, 60), 0))
      * case when open.jobs > p.encode_jobs then $5 else 1 end as share
  from queued q
  join accounts a on a.id = q.account_id
  join plans p on p.id = ${limitingPlanId}
  left join encode_shares s on s.account_id = q.account_id
  cross join lateral (
    select coalesce(sum(r.cost), 0)::float8 as cost,
      coalesce(array_agg(distinct r.job_id) filter (where r.kind <> 'poster'), '{}') as jobs,
      coalesce(bool_or(r.kind = 'poster'), false) as has_poster
    from encode_tasks r where r.status = 'processing' and r.account_id = q.account_id
  ) running
  cross join lateral (
    select count(*) as jobs from (
      select from encode_jobs j
      where j.state = 'running' and not j.is_poster and j.account_id = q.account_id limit p.encode_jobs + 1
    ) few
  ) open
  cross join lateral (
    (select t.id, t.priority, t.job_id, false as is_poster from encode_tasks t
     where cardinality(running.jobs) < p.encode_jobs
       and t.status = 'queued' and t.class = $1 and t.account_id = q.account_id
       and t.priority > ${posterPriority} and t.run_after <= clock_timestamp()
     order by t.priority desc, t.job_id, t.index limit 1)
    union all
    (select t.id, t.priority, t.job_id, false from encode_tasks t
     where cardinality(running.jobs) >= p.encode_jobs
       and t.job_id = any(running.jobs) and t.status = 'queued' and t.class = $1
       and t.run_after <= clock_timestamp()
     order by t.priority desc, t.job_id, t.index limit 1)
    union all
    (select t.id, t.priority, t.job_id, true from encode_tasks t
     where not running.has_poster
       and not exists (
         select from encode_tasks r where r.kind = 'poster' and r.status = 'cancelled'
           and r.account_id = q.account_id and r.lease_until > clock_timestamp())
       and t.status = 'queued' and t.class = $1 and t.account_id = q.account_id
       and t.priority = ${posterPriority} and t.run_after <= clock_timestamp()
     order by t.job_id limit 1)
  ) head
  where not exists (
    select from encode_pauses e
    where e.scope = 'all' or (e.scope = 'class' and e.subject = $1)
      or (e.scope = 'account' and e.subject = q.account_id))
), ranked as (
  select h.*, (h.open_jobs > 1 or h.is_poster)
    and h.served_at > min(h.job_at) filter (where h.open_jobs = 1 and not h.is_poster) over () as after_singles
  from heads h
), chosen as (
  select t.id
  from (
    select id from ranked order by priority desc, after_singles is true, share, is_poster desc, job_id
  ) h
  cross join lateral (
    select t.id from encode_tasks t where t.id = h.id and t.status = 'queued' for no key update skip locked
  ) t limit 1
), claimed as (
  update encode_tasks t set status = 'processing', fence = t.fence + 1, worker = $2,
    lease_until = clock_timestamp() + $3 * interval '1 millisecond', started_at = clock_timestamp()
  from chosen c where t.id = c.id
  returning t.*
), charged as (
  insert into encode_shares as s (account_id, recent, at)
  select account_id, cost, clock_timestamp() from claimed
  on conflict (account_id) do update set at = excluded.at, recent = excluded.recent
    + s.recent * 0.5 ^ least(extract(epoch from clock_timestamp() - s.at) / $4, 60)
)
select id, job_id as "jobId", video_id as "videoId", account_id as "accountId", kind, index, class, fence,
  cost, failures, losses, (select j.trace from encode_jobs j where j.id = claimed.job_id) as trace,
  greatest(extract(epoch from clock_timestamp() - run_after) * 1000, 0)::float8 as "queuedMs"
from claimed`;

/**
 * Claims the next task of a class, or null when none is due. Raises its fence; the lease holds until
 * `leaseMs` after the last heartbeat, by database time.
 *
 * One claim at a time, whatever its class: two that counted at once could start more jobs of an account than its
 * plan allows. A claim is short; 150 a second are far more than tasks that last seconds need. Who finds an empty
 * queue does not wait for its turn.
 */
export const claimTask = (
  db: Database,
  { worker, class: taskClass, leaseMs }: { worker: string; class: TaskClass; leaseMs: number },
): Promise<ClaimedTask | null> =>
  db.transaction(async (tx) => {
    const { rowCount } = await tx.query(
      `select ${lockClaims} where exists (select from encode_tasks where status = 'queued' and class = $1)`,
      [taskClass],
      'task-claim-lock',
    );
    if (rowCount === 0) return null;
    const { rows } = await tx.query<ClaimedTask>(
      claimStatement,
      [taskClass, worker, leaseMs, shareHalfLifeSeconds, bulkWeight],
      'task-claim',
    );
    return rows[0] ?? null;
  });

/**
 * `cancelled`: the work is no longer wanted (video deleted or failed, another poster chosen); `lost`: another may have
 * the task.
 */
export type HeartbeatAnswer = 'ok' | 'cancelled' | 'lost';

/** Extends a lease. */
export async function heartbeatTask(
  db: Queryable,
  { taskId, fence }: Attempt,
  leaseMs: number,
): Promise<HeartbeatAnswer> {
  const { rows } = await db.query<{ answer: HeartbeatAnswer }>(
    `with beat as (
       update encode_tasks t set lease_until = clock_timestamp() + $3 * interval '1 millisecond'
       from encode_jobs j, videos v
       where t.id = $1 and t.fence = $2 and t.status = 'processing' and j.id = t.job_id and v.id = t.video_id
       returning j.state = 'running' and ${wantedTask} as wanted
     )
     select case
       when (select wanted from beat) then 'ok'
       when exists (select from beat)
         or exists (select from encode_tasks where id = $1 and fence = $2 and status = 'cancelled')
         then 'cancelled'
       else 'lost' end as answer`,
    [taskId, fence, leaseMs],
    'task-heartbeat',
  );
  return rows[0]?.answer ?? 'lost';
}

/** Hands a task back unharmed (graceful shutdown): no loss counted, claimable at once. */
export const releaseTask = (db: Database, task: ClaimedTask): Promise<void> =>
  db.transaction(async (tx) => {
    const { rowCount } = await tx.query(
      `update encode_tasks set status = 'queued', worker = null, lease_until = null, run_after = clock_timestamp()
       where id = $1 and fence = $2 and status = 'processing'`,
      [task.id, task.fence],
      'task-release',
    );
    if (rowCount > 0) await addToOutbox(tx, [permit(task, task.fence)]);
  });
