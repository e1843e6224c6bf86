-- The embedded mode's bus: an append-only log with an offset per group. `packages/bus` owns these tables.

create table bus_partitions (
  id integer generated always as identity primary key,
  topic text not null,
  partition integer not null check (partition >= 0),
  -- the offset of the next message. Whoever publishes locks this row until its commit, so that offsets have no
  -- gaps and become visible in their order
  next_offset bigint not null default 0,
  -- the first message that retention has not deleted yet
  first_offset bigint not null default 0 check (first_offset <= next_offset),
  unique (topic, partition)
) with (fillfactor = 50); -- room for updates in place: these few rows change with every publish

create table bus_messages (
  -- no foreign key: its check would run once per message, and only a locked partition row gives out offsets
  partition_id integer not null,
  log_offset bigint not null,
  key text not null,
  value text not null,
  -- json, not jsonb: jsonb cannot hold the character U+0000
  headers json not null,
  -- the wall clock, not the transaction's start: it must not fall along a partition
  published_at timestamptz not null default clock_timestamp(),
  primary key (partition_id, log_offset)
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000);

create table bus_groups (
  id bigint generated always as identity primary key,
  name text not null,
  topic text not null,
  -- the last minute in which a member was alive; a group unseen for a day is forgotten with its offsets
  seen_at timestamptz not null default clock_timestamp(),
  unique (name, topic)
);

-- A member owns its partitions while its row exists. Others delete the row once the lease has run out, and that
-- sets its partitions free: a member that was merely paused finds itself evicted.
create table bus_members (
  id text primary key,
  group_id bigint not null references bus_groups on delete cascade,
  boot_id text not null,
  joined_at timestamptz not null default clock_timestamp(),
  lease_until timestamptz not null
);
create index bus_members_by_group on bus_members (group_id);

create table bus_offsets (
  group_id bigint not null references bus_groups on delete cascade,
  partition_id integer not null references bus_partitions,
  -- the offset of the next message to handle
  committed bigint not null,
  owner text references bus_members on delete set null,
  -- rises with every new owner; a commit carries it, so that an old owner changes nothing
  epoch bigint not null default 0,
  primary key (group_id, partition_id)
) with (fillfactor = 50);
create index bus_offsets_by_owner on bus_offsets (owner);
