-- A ban may hold the account's videos; the reconciler makes the holds match.
alter table accounts add column ban_holds_videos boolean not null default false;
