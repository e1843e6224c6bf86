-- An upload token starts one upload: the index spends it, the body tells a repeat from another use.

alter table uploads add column token_body_hash bytea;
create unique index uploads_token on uploads (token_id) where token_id is not null;
