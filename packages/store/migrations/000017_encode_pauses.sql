-- What the team holds back from being encoded: everything, a class of workers, or an account.
create table encode_pauses (
  scope text not null check (scope in ('all', 'class', 'account')),
  -- the class or the account; '' for everything
  subject text not null default '',
  reason text,
  paused_at timestamptz not null,
  primary key (scope, subject)
);
