-- A project's branding is part of what the CDN knows (docs/adr/0007): its changes need an order.
alter table projects add column version bigint not null default 1;
