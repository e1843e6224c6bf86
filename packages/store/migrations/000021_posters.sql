-- The poster of a video that plays is made anew by a job of its own, with one task, which leaves the encode alone.
-- The job that was made for the latest wish; what an earlier one makes is thrown away.
alter table videos add column poster_job_id text;
