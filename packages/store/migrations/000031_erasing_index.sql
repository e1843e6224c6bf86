create index accounts_erasing on accounts (id) where erased_at is not null and erasure_done_at is null;
