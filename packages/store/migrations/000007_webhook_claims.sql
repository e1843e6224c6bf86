-- What is in flight, apart from the deliveries that wait and the log they become: small, and written in batches.
create table webhook_claims (
  -- the fence; look-ups go by the delivery
  id bigint generated always as identity,
  endpoint_id text not null,
  -- at most two attempts of an endpoint at once, over all workers
  slot smallint not null check (slot in (1, 2)),
  delivery_id text not null unique,
  worker text not null,
  -- tells the runs of a worker apart
  boot text not null,
  -- when the attempt began
  started_at timestamptz not null,
  lease_until timestamptz not null,
  primary key (endpoint_id, slot)
);

-- What the last attempts said of an endpoint. No row: nothing is known yet.
create table webhook_breakers (
  endpoint_id text primary key,
  -- in a row
  failures integer not null default 0,
  -- open: no attempt before then, one at once after; null: closed
  open_until timestamptz
);
