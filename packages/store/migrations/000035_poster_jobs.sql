-- Whether a job makes a poster anew. Such jobs are not among an account's encode jobs at once; those that the release
-- before begins while it still runs are, as they were there.
alter table encode_jobs add column is_poster boolean not null default false;
