-- What befell the record itself, in one row: a record that came back from a backup lacks what was written since.
create table record_state (
  single boolean primary key default true check (single),
  -- rises while the record lives, and is told to the bucket: a bucket that knows a later one outlived this record
  mark bigint not null default 0,
  restored_at timestamptz,
  -- every version is at least this after a restore: above all that anybody saw of the life before
  epoch bigint not null default 0,
  -- until the team allows it, nothing deletes objects
  sweeps_off boolean not null default false,
  -- copies of holds in the bucket are to be placed again
  holds_wanted boolean not null default false
);
insert into record_state default values;

-- When the copy of a standing hold was put into the bucket; null: it is not there, or no longer true.
alter table video_holds add column copied_at timestamptz;
