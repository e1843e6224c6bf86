-- The encode tasks that encoders may claim now, and since when each may be. It says again what claims go by
-- (packages/store/src/encode-claims.ts): nothing that is paused or not due; of an account, one poster, the tasks of jobs
-- that run, and of as many more as its plan lets run beside them those that are first in the queue of the class. A view,
-- so that a scaler outside asks by the same rule as the metrics; like a claim it costs a few index look-ups for each
-- account that has something queued, however long the queues.
create view claimable_tasks as
with recursive queues (class, account_id) as (
  (select class, account_id from encode_tasks where status = 'queued' order by class, account_id limit 1)
  union all
  select next.class, next.account_id from queues q cross join lateral (
    select t.class, t.account_id from encode_tasks t
    where t.status = 'queued' and (t.class, t.account_id) > (q.class, q.account_id)
    order by t.class, t.account_id limit 1
  ) next
), turns as (
  select q.class, q.account_id, running.jobs, running.has_poster,
    greatest(p.encode_jobs - cardinality(running.jobs), 0) as places
  from queues q
  join accounts a on a.id = q.account_id
  join plans p on p.id = case when a.plan_status = 'canceled' then 'free' else a.plan_id end
  cross join lateral (
    select coalesce(array_agg(distinct r.job_id) filter (where r.kind <> 'poster'), '{}') as jobs,
      coalesce(bool_or(r.kind = 'poster'), false) as has_poster
    from encode_tasks r where r.status = 'processing' and r.account_id = q.account_id
  ) running
  where not exists (
    select from encode_pauses e
    where e.scope = 'all' or (e.scope = 'class' and e.subject = q.class)
      or (e.scope = 'account' and e.subject = q.account_id))
)
select t.id, q.class, q.account_id, t.cost, greatest(t.run_after, job.since) as since
from turns q
cross join lateral (
  select unnest(q.jobs) as id, null::timestamptz as since
  union all
  -- Each job that ends lets the others of its account come one place nearer: with three places free, the first got its
  -- own three endings ago, the second two, the third with the last.
  select next.id, (
    select j.finished_at from encode_jobs j
    where j.account_id = q.account_id and not j.is_poster and j.finished_at is not null
    order by j.finished_at desc offset q.places - next.place limit 1)
  from (
    select t.job_id as id, row_number() over (order by t.priority desc, t.job_id) as place from encode_tasks t
    where t.status = 'queued' and t.class = q.class and t.account_id = q.account_id and t.priority > -1
      and t.run_after <= statement_timestamp() and t.job_id <> all (q.jobs)
    group by t.priority, t.job_id order by t.priority desc, t.job_id limit q.places
  ) next
  union all
  (select t.job_id, (
     select max(j.finished_at) from encode_jobs j
     where j.account_id = q.account_id and j.is_poster and j.finished_at is not null)
   from encode_tasks t
   where not q.has_poster
     and not exists (
       select from encode_tasks r where r.kind = 'poster' and r.status = 'cancelled'
         and r.account_id = q.account_id and r.lease_until > statement_timestamp())
     and t.status = 'queued' and t.class = q.class and t.account_id = q.account_id and t.priority = -1
     and t.run_after <= statement_timestamp()
   order by t.job_id limit 1)
) job
-- A look-up for each job: without the offset the whole queue would be read and joined.
cross join lateral (
  select t.id, t.cost, t.run_after from encode_tasks t
  where t.job_id = job.id and t.status = 'queued' and t.class = q.class and t.run_after <= statement_timestamp()
  offset 0
) t;
