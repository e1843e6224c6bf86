-- Kubernetes objects as sources of holds and plans, and what every CDN process has confirmed.

-- Of a hold: when it was first seen committed, and when the last process of the CDN confirmed that it knows it.
alter table video_holds add column seen_at timestamptz, add column effective_at timestamptz;
create index video_holds_spreading on video_holds (placed_at) where lifted_at is null and effective_at is null;
-- What was placed before this was kept is not asked for.
update video_holds set seen_at = placed_at, effective_at = placed_at where lifted_at is null;

-- Processes of the CDN: up to which instant of this database each knows every change of the playback state.
create table cdn_processes (
  boot_id text primary key,
  confirmed_up_to timestamptz not null,
  seen_at timestamptz not null
);

-- A Plan that was made later takes a plan over from one that was made before.
alter table plans add column source_created_at timestamptz;
-- Rises with every change that accounts' playback states must hear of; `announced_revision` is what all have heard.
alter table plans add column revision bigint not null default 0, add column announced_revision bigint not null default 0;
alter table accounts add column plan_revision bigint not null default 0;
