-- The poster of a video that plays is made anew by a job of its own, with one task, which leaves the encode alone.
-- The job that was made for the latest wish; what an earlier one makes is thrown away.
alter table videos add column poster_job_id text;

alter table encode_tasks drop constraint encode_tasks_kind_check;
alter table encode_tasks add constraint encode_tasks_kind_check
  check (kind in ('plan', 'video', 'audio', 'images', 'assemble', 'poster')) not valid;
alter table encode_tasks validate constraint encode_tasks_kind_check;
