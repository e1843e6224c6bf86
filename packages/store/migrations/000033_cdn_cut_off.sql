-- A process of the CDN that lives, and told so by the internal route since the bus did not take its word.
alter table cdn_processes add column cut_off boolean not null default false;
