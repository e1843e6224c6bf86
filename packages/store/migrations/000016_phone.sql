-- Proofs of phone numbers, and bans of numbers and devices. A number is kept as its HMAC alone.

create table phone_challenges (
  id text primary key,
  account_id text not null references accounts,
  phone_hash bytea not null,
  -- HMAC too: a plain hash of six digits is guessed at once
  code_hash bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  -- null: the message is not out; such a row counts, so that a burst cannot pass the limits, and proves nothing
  sent_at timestamptz,
  wrong_codes smallint not null default 0,
  -- used, or voided by a later one
  closed_at timestamptz
);
create index phone_challenges_account on phone_challenges (account_id, created_at);
create index phone_challenges_number on phone_challenges (phone_hash, created_at);

-- The number that the account has proved.
alter table accounts add column phone_hash bytea;

create table phone_bans (
  phone_hash bytea primary key,
  reason text,
  created_at timestamptz not null default clock_timestamp()
);

create table device_bans (
  -- what the signed cookie names
  device_id text primary key,
  reason text,
  created_at timestamptz not null default clock_timestamp()
);
