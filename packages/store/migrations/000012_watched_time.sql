-- Which segments of a view were counted. A view is a token on a client address: its row outlives the token, so
-- that nothing is counted twice.
create table playback_views (
  token_hash text not null,
  ip_hash text not null,
  video_id text not null,
  account_id text not null references accounts,
  segments bytea not null,
  updated_at timestamptz not null,
  primary key (token_hash, ip_hash, video_id)
);
create index playback_views_age on playback_views (updated_at);
