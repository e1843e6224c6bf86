-- Webhooks: where events go, and the log of their deliveries.

create table webhook_endpoints (
  id text primary key,
  project_id text not null references projects,
  url text not null,
  events text[] not null,
  -- the signing secret, encrypted: `kid.base64url`
  secret text not null,
  created_at timestamptz not null,
  deleted_at timestamptz
);
create index webhook_endpoints_project on webhook_endpoints (project_id, created_at, id);

create table webhook_deliveries (
  id text primary key,
  endpoint_id text not null references webhook_endpoints,
  event_id text not null references events,
  created_at timestamptz not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
  -- recorded ones
  attempts integer not null default 0,
  last_status integer,
  last_attempt_at timestamptz,
  next_attempt_at timestamptz,
  last_error text,
  -- the delivery that a customer asked for once more; kept when that is purged
  redelivery_of text,
  check ((status = 'pending') = (next_attempt_at is not null))
);
-- Fan-out happens once for each event and endpoint, however often its message comes.
create unique index webhook_deliveries_once on webhook_deliveries (event_id, endpoint_id) where redelivery_of is null;
create index webhook_deliveries_due on webhook_deliveries (endpoint_id, next_attempt_at) where status = 'pending';
create index webhook_deliveries_page on webhook_deliveries (endpoint_id, created_at desc, id desc);
create index webhook_deliveries_age on webhook_deliveries (created_at);

create function notify_webhooks() returns trigger language plpgsql as $$
begin
  notify millrace_webhooks;
  return null;
end $$;
create trigger webhook_deliveries_wake after insert on webhook_deliveries
  for each statement execute function notify_webhooks();
