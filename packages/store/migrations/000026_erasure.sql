-- Accounts that were erased: since when, and when the last of their objects was gone.
alter table accounts add column erased_at timestamptz, add column erasure_done_at timestamptz;
