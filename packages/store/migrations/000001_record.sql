-- The record: accounts and what they own, uploads, videos and their holds, encoding, events, and the
-- bookkeeping every service shares. Times are timestamptz; ids are the API's own (`vid_…`).

create table plans (
  id text primary key,
  name text not null,
  price_amount integer,
  price_currency text not null default 'SAR',
  price_interval text not null default 'month',
  -- null means no limit
  stored_seconds bigint,
  upload_seconds_per_period bigint,
  watched_minutes_per_period bigint,
  verified_domains integer,
  projects integer,
  max_quality text not null,
  white_label boolean not null,
  max_file_bytes bigint not null,
  max_source_seconds integer not null,
  encode_jobs integer not null,
  -- over the watched-minutes limit: stop playback (free) or count overage (paid)
  watch_limit_stops boolean not null,
  -- who owns the row: the shipped defaults, or a Kubernetes Plan by uid and generation
  source text not null default 'default' check (source in ('default', 'kubernetes')),
  source_uid text,
  source_generation bigint,
  updated_at timestamptz not null default now()
);

insert into plans (id, name, price_amount, stored_seconds, upload_seconds_per_period, watched_minutes_per_period,
  verified_domains, projects, max_quality, white_label, max_file_bytes, max_source_seconds, encode_jobs, watch_limit_stops)
values
  ('free',    'Free',    null,  36000,   18000,  5000,   1,    1,    '720p',  false, 5368709120,   14400, 2,  true),
  ('starter', 'Starter', 9900,  360000,  180000, 50000,  3,    3,    '1080p', false, 21474836480,  28800, 4,  false),
  ('pro',     'Pro',     29900, 1800000, 900000, 500000, 10,   10,   '2160p', true,  107374182400, 43200, 16, false),
  ('agency',  'Agency',  99900, null,    null,   null,   null, null, '2160p', true,  536870912000, 86400, 64, false);

create table accounts (
  id text primary key,
  name text not null,
  plan_id text not null references plans,
  plan_status text not null default 'active' check (plan_status in ('active', 'pilot', 'past_due', 'canceled')),
  -- rises with every change that the CDN must hear of
  version bigint not null default 1,
  -- day of the month on which a period starts, 00:00 UTC (or the month's last day)
  anchor_day smallint not null check (anchor_day between 1 and 31),
  over_watch_limit boolean not null default false,
  banned_at timestamptz,
  ban_reason text,
  phone_verified_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create table users (
  id text primary key,
  account_id text not null references accounts,
  role text not null check (role in ('owner', 'member')),
  email text not null,
  display_name text not null,
  -- OpenID Connect identity; null for users made by the operator
  issuer text,
  subject text,
  created_at timestamptz not null
);
create unique index users_email on users (lower(email));
create unique index users_identity on users (issuer, subject);
create index users_account on users (account_id);

create table sessions (
  -- SHA-256 of the cookie's value
  id_hash bytea primary key,
  user_id text not null references users on delete cascade,
  created_at timestamptz not null,
  last_seen_at timestamptz not null,
  expires_at timestamptz not null
);
create index sessions_user on sessions (user_id);
create index sessions_expiry on sessions (expires_at);

create table projects (
  id text primary key,
  account_id text not null references accounts,
  name text not null,
  branding jsonb not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz
);
create index projects_account on projects (account_id, created_at, id) where deleted_at is null;

create table api_keys (
  id text primary key,
  project_id text not null references projects,
  name text not null,
  scope text not null check (scope in ('full', 'playback')),
  -- what a person may see of the value: `svk_<id part>`
  prefix text not null,
  -- SHA-256 of the secret part
  secret_hash bytea not null,
  created_at timestamptz not null,
  last_used_at timestamptz,
  expires_at timestamptz,
  revoked_at timestamptz
);
create index api_keys_project on api_keys (project_id, created_at, id);

create table domains (
  id text primary key,
  project_id text not null references projects,
  account_id text not null references accounts,
  -- lower-case punycode, no final dot
  hostname text not null,
  status text not null default 'pending' check (status in ('pending', 'verified', 'lapsed')),
  -- hex part of the TXT value `svc-verify=<hex>`
  challenge text not null,
  created_at timestamptz not null,
  verified_at timestamptz,
  last_check_at timestamptz,
  last_check_found text[],
  -- since when the daily check has not found the record
  missing_since timestamptz
);
create unique index domains_account_hostname on domains (account_id, hostname);
create unique index domains_verified_hostname on domains (hostname) where status = 'verified';
create index domains_project on domains (project_id, created_at, id);

create table videos (
  id text primary key,
  project_id text not null references projects,
  account_id text not null references accounts,
  title text not null,
  status text not null check (status in ('uploading', 'processing', 'ready', 'failed', 'held')),
  version bigint not null default 1,
  size_bytes bigint not null,
  duration_ms bigint,
  -- what was encoded, rising; today's plan filters it when it is read
  qualities text[] not null default '{}',
  failure_code text,
  failure_message text,
  poster_at_seconds double precision,
  -- the original in the object store; null once it is gone
  source_key text,
  current_job_id text,
  -- delivery index of the finished encode
  index_key text,
  created_at timestamptz not null,
  -- strictly rising per video
  updated_at timestamptz not null,
  ready_at timestamptz,
  deleted_at timestamptz,
  deleted_by text check (deleted_by in ('customer', 'team', 'cancel', 'expiry', 'erasure')),
  -- set when every object of a deleted video is gone for good
  purged_at timestamptz,
  check ((failure_code is null) = (status <> 'failed'))
);
create index videos_page on videos (project_id, created_at desc, id desc) where deleted_at is null;
create index videos_account on videos (account_id) where deleted_at is null;
create index videos_to_purge on videos (deleted_at) where deleted_at is not null and purged_at is null;

create table video_holds (
  id text primary key,
  video_id text not null references videos,
  source text not null check (source in ('admin', 'automatic', 'kubernetes')),
  -- names the hold within its source: `admin`, a check's name, a VideoHold's uid
  reference text not null,
  reason text,
  legal boolean not null default false,
  placed_at timestamptz not null,
  lifted_at timestamptz
);
create unique index video_holds_active on video_holds (video_id, source, reference) where lifted_at is null;

create table uploads (
  id text primary key,
  video_id text not null unique references videos,
  project_id text not null references projects,
  account_id text not null references accounts,
  object_key text not null,
  store_upload_id text not null,
  state text not null default 'open'
    check (state in ('open', 'completing', 'completed', 'failed', 'cancelled', 'expired')),
  declared_bytes bigint not null,
  content_type text not null,
  file_name text,
  part_size_bytes bigint not null,
  part_count integer not null,
  -- from an upload token: cap on the real size, content type to match, token that owns the upload
  max_bytes bigint,
  bound_content_type text,
  token_id text,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  -- while `completing`: what the store was asked for, and until when its outcome is awaited
  completing_parts jsonb,
  completing_until timestamptz,
  closed_at timestamptz
);
create index uploads_expiry on uploads (expires_at) where state = 'open';
create index uploads_completing on uploads (completing_until) where state = 'completing';

create table encode_jobs (
  id text primary key,
  video_id text not null references videos,
  account_id text not null references accounts,
  state text not null default 'running' check (state in ('running', 'succeeded', 'failed', 'cancelled')),
  planner_version integer,
  -- the plan as it was carried out (ffmpeg build, arguments, source hash): an encode can be repeated
  manifest jsonb,
  -- tasks before assembly that are not done; zero inserts the assemble task
  remaining integer not null default 0 check (remaining >= 0),
  report jsonb not null default '{}',
  trace jsonb not null default '{}',
  created_at timestamptz not null,
  finished_at timestamptz
);
create index encode_jobs_video on encode_jobs (video_id);
create index encode_jobs_running on encode_jobs (account_id) where state = 'running';

create table encode_tasks (
  id text primary key,
  job_id text not null references encode_jobs,
  video_id text not null references videos,
  account_id text not null references accounts,
  kind text not null check (kind in ('plan', 'video', 'audio', 'images', 'assemble')),
  index integer not null default 0,
  class text not null default 'standard' check (class in ('standard', 'large')),
  priority smallint not null default 0,
  status text not null default 'queued' check (status in ('queued', 'processing', 'done', 'failed', 'cancelled')),
  -- raised by every claim; finish and fail are guarded by it
  fence bigint not null default 0,
  -- what ffmpeg or validation did, and what losing a worker did
  failures integer not null default 0,
  losses integer not null default 0,
  worker text,
  lease_until timestamptz,
  run_after timestamptz not null,
  -- estimated CPU seconds, for scaling and fairness
  cost real not null default 1,
  last_error jsonb,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  unique (job_id, kind, index)
);
create index encode_tasks_queue on encode_tasks (class, priority desc, run_after) where status = 'queued';
create index encode_tasks_running on encode_tasks (account_id, lease_until) where status = 'processing';

-- The winning attempt's output of a task.
create table task_outputs (
  task_id text primary key references encode_tasks,
  fence bigint not null,
  prefix text not null,
  output jsonb not null,
  created_at timestamptz not null
);

-- Every object lives under a prefix whose row exists before its first byte; sweeps go by these rows.
create table object_prefixes (
  prefix text primary key,
  video_id text not null references videos,
  kind text not null check (kind in ('source', 'attempt')),
  task_id text references encode_tasks,
  fence bigint,
  created_at timestamptz not null,
  -- tombstone: delete from then on, list again a day after the purge, done when still empty
  delete_after timestamptz,
  purged_at timestamptz,
  unique (task_id, fence)
);
create index object_prefixes_video on object_prefixes (video_id);
create index object_prefixes_doomed on object_prefixes (delete_after) where delete_after is not null;

create table events (
  id text primary key,
  type text not null,
  account_id text not null references accounts,
  project_id text not null references projects,
  video_id text references videos,
  -- the exact bytes of every delivery of this event
  body bytea not null,
  created_at timestamptz not null
);
create index events_age on events (created_at);
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% rows are never changed', tg_table_name;
end $$;
create trigger events_immutable before update on events for each row execute function refuse_change();

create table outbox (
  id bigint generated always as identity primary key,
  topic text not null,
  key text not null,
  version bigint not null,
  -- set for heartbeats only: one on each partition
  partition integer,
  value jsonb not null,
  headers jsonb not null default '{}',
  created_at timestamptz not null default clock_timestamp(),
  attempts integer not null default 0,
  last_error text,
  -- refused too often: skipped, and alerted on
  parked_at timestamptz
);
create function notify_outbox() returns trigger language plpgsql as $$
begin
  notify millrace_outbox;
  return null;
end $$;
create trigger outbox_wakes after insert on outbox for each statement execute function notify_outbox();

-- One row per account, the lock under which limits are reserved. Milliseconds, exact.
create table usage (
  account_id text primary key references accounts,
  period_start timestamptz not null,
  period_end timestamptz not null,
  stored_ms bigint not null default 0 check (stored_ms >= 0),
  upload_ms bigint not null default 0 check (upload_ms >= 0),
  watched_ms bigint not null default 0 check (watched_ms >= 0),
  updated_at timestamptz not null
);

-- What a video holds of its account's limits; released once, by the transition that ends it.
create table usage_reservations (
  video_id text not null references videos,
  kind text not null check (kind in ('stored', 'upload')),
  account_id text not null references accounts,
  amount_ms bigint not null,
  -- of the period that an upload was charged to
  period_start timestamptz not null,
  created_at timestamptz not null,
  released_at timestamptz,
  primary key (video_id, kind)
);

-- Results of requests with an Idempotency-Key, kept 24 hours.
create table idempotency (
  account_id text not null references accounts,
  method text not null,
  path text not null,
  key text not null,
  body_hash bytea not null,
  status integer,
  body jsonb,
  created_at timestamptz not null,
  primary key (account_id, method, path, key)
);
create index idempotency_age on idempotency (created_at);

create table leases (
  name text primary key,
  holder text not null,
  epoch bigint not null,
  expires_at timestamptz not null
);

create table audit (
  id text primary key,
  at timestamptz not null,
  -- who: `operator`, `admin`, an access-gateway subject, `kubernetes:<namespace>/<name>`
  actor text not null,
  action text not null,
  subject text not null,
  details jsonb not null default '{}'
);
create index audit_at on audit (at, id);
create index audit_subject on audit (subject, at);
create trigger audit_append_only before update or delete on audit for each row execute function refuse_change();
