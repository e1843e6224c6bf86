-- When jobs of an account ended, the latest first: since when it may run another.
create index encode_jobs_ended on encode_jobs (account_id, is_poster, finished_at) where finished_at is not null;
