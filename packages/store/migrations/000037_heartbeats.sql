-- The latest time that a heartbeat of a topic told. The clock of the database may step back, at a fail-over to a standby
-- above all; what heartbeats from before have proven stays ahead of it until it has caught up.
create table heartbeats (topic text primary key, latest timestamptz not null);
