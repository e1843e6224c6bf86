-- A Plan that was made later takes a plan over from one that was made before.
alter table plans add column source_created_at timestamptz;
-- Rises with every change that accounts' playback states must hear of; `announced_revision` is what all have heard.
alter table plans add column revision bigint not null default 0, add column announced_revision bigint not null default 0;
