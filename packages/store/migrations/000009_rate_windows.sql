-- Requests of a client in a minute, counted for all replicas. Unlogged: a crash forgets a minute, and the counting
-- costs no write-ahead log.
create unlogged table rate_windows (
  bucket text not null,
  client text not null,
  starts_at timestamptz not null,
  hits integer not null,
  primary key (bucket, client, starts_at)
);
