-- What accounts say to the team: interest in paid plans, reports of viewers, and what payment providers report.

create table whitelist (
  account_id text not null references accounts,
  plan_id text not null references plans,
  email text not null,
  created_at timestamptz not null,
  primary key (account_id, plan_id)
);

create table reports (
  id text primary key,
  video_id text not null references videos,
  account_id text not null references accounts,
  reason text not null,
  detail text,
  created_at timestamptz not null
);
create index reports_page on reports (created_at desc, id desc);
create index reports_video on reports (video_id);

create table billing_events (
  provider text not null,
  -- the provider's own id: it repeats what it was not answered for
  event_id text not null,
  body bytea not null,
  created_at timestamptz not null,
  primary key (provider, event_id)
);
