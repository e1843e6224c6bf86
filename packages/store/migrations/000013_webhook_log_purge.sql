-- The log is forgotten along its events, which have an index by age already.
drop index webhook_deliveries_age;
