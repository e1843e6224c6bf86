-- Captions of a video, one file a language. The object lies under a prefix of its own, which replaces nothing.
create table captions (
  video_id text not null references videos,
  -- BCP 47, canonical
  language text not null,
  name text not null,
  -- key of the object is prefix || language || '.vtt'
  prefix text not null references object_prefixes on delete cascade,
  bytes integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (video_id, language)
);
create index captions_prefix on captions (prefix);

alter table object_prefixes drop constraint object_prefixes_kind_check;
alter table object_prefixes add constraint object_prefixes_kind_check
  check (kind in ('source', 'attempt', 'captions')) not valid;
alter table object_prefixes validate constraint object_prefixes_kind_check;
