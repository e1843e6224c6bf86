-- Trace context of what queued a delivery, as headers; null while nothing is traced.
alter table webhook_deliveries add column trace jsonb;
