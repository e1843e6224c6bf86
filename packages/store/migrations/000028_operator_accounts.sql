-- The revision of its plan that an account's playback state was last made by.
alter table accounts add column plan_revision bigint not null default 0;
