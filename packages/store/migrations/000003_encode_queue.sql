-- Claims go account by account: the head of each account's queue is one index look-up, however long it is.
drop index encode_tasks_queue;
create index encode_tasks_queue on encode_tasks (class, account_id, priority desc, job_id, index)
  where status = 'queued';
create index encode_tasks_lease on encode_tasks (lease_until) where status = 'processing';
create index encode_tasks_video on encode_tasks (video_id) where status in ('queued', 'processing');

-- What an account was given lately: with few slots the running work alone says nothing about fairness.
create table encode_shares (
  account_id text primary key references accounts,
  -- CPU seconds claimed, decayed up to `at`
  recent real not null,
  at timestamptz not null
);
