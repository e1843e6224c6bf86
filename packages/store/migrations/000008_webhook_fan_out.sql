-- Where an event goes is decided as it is created, in its own transaction and by no clock: comparing its time with
-- an endpoint's later would lose events whenever the record's clock is set back.
alter table events add column endpoint_ids text[];
create function choose_endpoints() returns trigger language plpgsql as $$
begin
  -- `webhook.test` names its endpoint itself
  if new.endpoint_ids is null then
    new.endpoint_ids := array(
      select id from webhook_endpoints
      where project_id = new.project_id and deleted_at is null and new.type = any (events));
  end if;
  return new;
end $$;
create trigger events_choose_endpoints before insert on events for each row execute function choose_endpoints();

-- Forgetting an event asks whether deliveries of it are left.
create index webhook_deliveries_event on webhook_deliveries (event_id);
