-- Every recorded attempt takes its delivery out of the queue's index and so writes an entry into each of the others:
-- two of those can go. The index that keeps fan-out to once also tells what an event has left of deliveries.
drop index webhook_deliveries_once;
drop index webhook_deliveries_event;
create unique index webhook_deliveries_once on webhook_deliveries
  (event_id, endpoint_id, (case when redelivery_of is null then '' else id end));
-- Deliveries lie in the order in which they came.
drop index webhook_deliveries_age;
create index webhook_deliveries_age on webhook_deliveries using brin (created_at) with (pages_per_range = 32);
