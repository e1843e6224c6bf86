-- Kubernetes objects as sources of holds and plans, and what every CDN process has confirmed.

-- Of a hold: when it was first seen committed, and when the last process of the CDN confirmed that it knows it.
alter table video_holds add column seen_at timestamptz, add column effective_at timestamptz;

-- Processes of the CDN: up to which instant of this database each knows every change of the playback state.
create table cdn_processes (
  boot_id text primary key,
  confirmed_up_to timestamptz not null,
  seen_at timestamptz not null
);
