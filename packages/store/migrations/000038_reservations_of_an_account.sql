-- What an account's sums of usage are held against, account by account.
create index usage_reservations_account on usage_reservations (account_id) where released_at is null;
