-- The encodes that an account has open, however many posters it has chosen beside them.
create index encode_jobs_encoding on encode_jobs (account_id) where state = 'running' and not is_poster;
-- Posters that were given up while they were made: until its lease runs out a worker may not know yet.
create index encode_tasks_stopping on encode_tasks (account_id, lease_until)
  where kind = 'poster' and status = 'cancelled' and lease_until is not null;
