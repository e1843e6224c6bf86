-- Events that have not become deliveries yet. Their message may be lost, they may not: the reconciler looks here. A
-- table of its own, since an event is never changed, and so that looking costs what waits and not what was ever sent.
create table webhook_fan_outs (
  event_id text primary key,
  since timestamptz not null default clock_timestamp()
);

create or replace function choose_endpoints() returns trigger language plpgsql as $$
begin
  -- `webhook.test` names its endpoint itself, and has its delivery with it
  if new.endpoint_ids is null then
    new.endpoint_ids := array(
      select id from webhook_endpoints
      where project_id = new.project_id and deleted_at is null and new.type = any (events));
    if cardinality(new.endpoint_ids) > 0 then
      insert into webhook_fan_outs (event_id) values (new.id);
    end if;
  end if;
  return new;
end $$;

-- What is under way now, and what was lost before.
insert into webhook_fan_outs (event_id)
select id from events v
where cardinality(endpoint_ids) > 0 and not exists (select from webhook_deliveries d where d.event_id = v.id);
