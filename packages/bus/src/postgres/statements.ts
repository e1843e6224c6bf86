import { type Statement } from './connections.ts';

const named = (name: string, text: string): Statement => ({ name: `bus_${name}`, text });

export const partitionsOfTopic = named(
  'partitions_of_topic',
  `select id, partition from bus_partitions where topic = $1 order by partition`,
);

export const ensureTopics = named(
  'ensure_topics',
  `insert into bus_partitions (topic, partition)
   select t.topic, n.partition
   from unnest($1::text[], $2::integer[]) t (topic, partitions), generate_series(0, t.partitions - 1) n (partition)
   order by t.topic, n.partition
   on conflict do nothing`,
);

/**
 * One round trip, one transaction. Partition rows are locked in the order of their ids (no deadlocks) and stay
 * locked to the commit, hence offsets become visible in their order. `advanced` waits for `locked`, and PostgreSQL
 * reads a row again that changed while its lock was awaited, so `next_offset` is the newest.
 */
export const append = named(
  'append',
  `with input as materialized (
     select * from unnest($1::integer[], $2::text[], $3::text[], $4::json[])
       with ordinality as input (partition_id, key, value, headers, position)
   ), counts as materialized (
     select partition_id, count(*) as messages from input group by partition_id
   ), locked as materialized (
     select id from bus_partitions where id in (select partition_id from counts) order by id for update
   ), advanced as (
     update bus_partitions p set next_offset = p.next_offset + counts.messages
     from locked join counts on counts.partition_id = locked.id
     where p.id = locked.id
     returning p.id, p.next_offset - counts.messages as first
   )
   insert into bus_messages (partition_id, log_offset, key, value, headers)
   select input.partition_id,
     advanced.first + row_number() over (partition by input.partition_id order by input.position) - 1,
     input.key, input.value, input.headers
   from input join advanced on advanced.id = input.partition_id`,
);

export const join = named(
  'join',
  `with this_group as (
     insert into bus_groups (name, topic) values ($1, $2)
     on conflict (name, topic) do update set seen_at = clock_timestamp()
     returning id
   ), positions as (
     insert into bus_offsets (group_id, partition_id, committed)
     select this_group.id, p.id, case when $5 then p.next_offset else p.first_offset end
     from this_group, bus_partitions p where p.topic = $2
     on conflict do nothing
   )
   insert into bus_members (id, group_id, boot_id, lease_until)
   select $3, id, $4, clock_timestamp() + $6 * interval '1 millisecond' from this_group
   on conflict (id) do update set lease_until = excluded.lease_until`,
);

/**
 * Evicting locks the member's row and looks again: one that renews at the same moment stays, one that renews a
 * moment later finds no row. The group's `seen_at` is written at most once a minute.
 */
export const renew = named(
  'renew',
  `with renewed as (
     update bus_members set lease_until = clock_timestamp() + $2 * interval '1 millisecond'
     where id = $1 returning group_id
   ), evicted as (
     delete from bus_members where id in (
       select m.id from bus_members m join renewed using (group_id)
       where m.id <> $1 and m.lease_until < clock_timestamp()
       for update of m skip locked
     )
     returning id
   ), seen as (
     update bus_groups g set seen_at = clock_timestamp() from renewed
     where g.id = renewed.group_id and g.seen_at < clock_timestamp() - interval '1 minute'
   )
   select m.id from bus_members m join renewed using (group_id)
   where m.id not in (select id from evicted)
   order by m.joined_at, m.id`,
);

export const survey = named(
  'survey',
  `select p.partition, o.owner, o.epoch, o.committed, p.first_offset as first, p.next_offset as end
   from bus_members m join bus_offsets o using (group_id) join bus_partitions p on p.id = o.partition_id
   where m.id = $1 order by p.partition`,
);

export const claim = named(
  'claim',
  `update bus_offsets o set owner = $1, epoch = o.epoch + 1
   from (
     select o.group_id, o.partition_id
     from bus_members m join bus_offsets o using (group_id)
     where m.id = $1 and o.owner is null
     order by o.partition_id limit $2
     for update of o skip locked
   ) free
   where o.group_id = free.group_id and o.partition_id = free.partition_id
   returning o.partition_id`,
);

export const release = named(
  'release',
  `update bus_offsets o set owner = null from bus_partitions p
   where o.owner = $1 and p.id = o.partition_id and p.partition = any($2::integer[])`,
);

export const leave = named('leave', `delete from bus_members where id = $1`);

/** The size of a compressed value is in its header: bounding by bytes decompresses nothing. */
export const fetch = named(
  'fetch',
  `select wanted.partition, m.log_offset as offset, m.key, m.value, m.headers, m.published_at as timestamp,
     wanted.end
   from (
     select p.id, p.partition, p.next_offset as end, w.position
     from unnest($2::integer[], $3::bigint[]) w (partition, position)
     join bus_partitions p on p.topic = $1 and p.partition = w.partition
   ) wanted
   cross join lateral (
     select page.*, sum(octet_length(page.value)) over (order by page.log_offset) - octet_length(page.value) as before
     from (
       select * from bus_messages
       where partition_id = wanted.id and log_offset >= wanted.position
       order by log_offset limit $4
     ) page
   ) m
   where m.before < $5
   order by wanted.partition, m.log_offset`,
);

export const commit = named(
  'commit',
  `update bus_offsets o set committed = greatest(o.committed, c.next)
   from unnest($2::integer[], $3::bigint[], $4::bigint[]) c (partition, epoch, next), bus_partitions p
   where o.owner = $1 and p.id = o.partition_id and p.partition = c.partition and o.epoch = c.epoch
   returning p.partition`,
);

export const lag = named(
  'lag',
  `select p.partition, p.next_offset - greatest(p.first_offset, o.committed) as messages
   from bus_partitions p
   left join bus_groups g on g.name = $1 and g.topic = p.topic
   left join bus_offsets o on o.group_id = g.id and o.partition_id = p.id
   where p.topic = $2 order by p.partition`,
);

export const notify = named('notify', `select pg_notify($1, payload) from unnest($2::text[]) payload`);

/**
 * Deletes a batch from the old end of a partition. What is left has no gaps: it stops at the first message that
 * is young enough.
 */
export const prunePartition = named(
  'prune_partition',
  `with page as materialized (
     select m.log_offset, m.published_at from bus_partitions p
     join bus_messages m on m.partition_id = p.id and m.log_offset >= p.first_offset
     where p.id = $1 order by m.log_offset limit $3
   ), boundary as (
     select coalesce(min(log_offset) filter (where published_at >= $2), max(log_offset) + 1) as kept from page
   ), deleted as (
     delete from bus_messages m using boundary
     where m.partition_id = $1 and m.log_offset < boundary.kept returning 1
   ), moved as (
     update bus_partitions p set first_offset = boundary.kept from boundary
     where p.id = $1 and boundary.kept > p.first_offset
   )
   select count(*) as messages from deleted`,
);

export const allPartitions = named('all_partitions', `select id from bus_partitions order by id`);

export const forgetGroups = named(
  'forget_groups',
  `delete from bus_groups g
   where g.seen_at < clock_timestamp() - interval '1 day'
     and not exists (select from bus_members m where m.group_id = g.id and m.lease_until > clock_timestamp())
   returning g.id`,
);

export const evictOtherBoots = named('evict_other_boots', `delete from bus_members where boot_id <> $1`);
