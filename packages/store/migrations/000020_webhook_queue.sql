-- What waits, apart from the log: recording an attempt then changes no indexed column of the log, so that it writes
-- no index (a heap-only update). A delivery that is pending is either here or claimed.
create table webhook_queue (
  endpoint_id text not null,
  due_at timestamptz not null,
  delivery_id text not null,
  -- what a claim has to know of the delivery
  event_id text not null,
  attempts integer not null,
  redelivery boolean not null,
  trace jsonb,
  primary key (endpoint_id, due_at, delivery_id)
);

insert into webhook_queue (endpoint_id, due_at, delivery_id, event_id, attempts, redelivery, trace)
select endpoint_id, next_attempt_at, id, event_id, attempts, redelivery_of is not null, trace
from webhook_deliveries d
where status = 'pending' and not exists (select from webhook_claims c where c.delivery_id = d.id);

-- Inserting a delivery queues it, whoever does it.
drop trigger webhook_deliveries_wake on webhook_deliveries;
drop function notify_webhooks();
create function queue_deliveries() returns trigger language plpgsql as $$
begin
  insert into webhook_queue (endpoint_id, due_at, delivery_id, event_id, attempts, redelivery, trace)
  select endpoint_id, next_attempt_at, id, event_id, attempts, redelivery_of is not null, trace
  from added where status = 'pending';
  notify millrace_webhooks;
  return null;
end $$;
create trigger webhook_deliveries_queue after insert on webhook_deliveries referencing new table as added
  for each statement execute function queue_deliveries();

drop index webhook_deliveries_due;
-- Room for a second version of each row on its own page, without which an update is not heap-only.
alter table webhook_deliveries set (fillfactor = 60);

-- Taking a delivery out of the queue makes its claim the only one: no index has to.
-- A claim has all of the queue's row, so that it can go back as it came.
alter table webhook_claims drop constraint webhook_claims_delivery_id_key;
alter table webhook_claims add column due_at timestamptz, add column event_id text, add column attempts integer,
  add column redelivery boolean, add column trace jsonb;
update webhook_claims c set due_at = d.next_attempt_at, event_id = d.event_id, attempts = d.attempts,
  redelivery = d.redelivery_of is not null, trace = d.trace
from webhook_deliveries d where d.id = c.delivery_id;
delete from webhook_claims where due_at is null;
alter table webhook_claims alter column due_at set not null, alter column event_id set not null,
  alter column attempts set not null, alter column redelivery set not null;
alter table webhook_claims set (fillfactor = 40);
