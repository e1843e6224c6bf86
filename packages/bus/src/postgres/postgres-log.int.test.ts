import { describe, expect, it } from '@jest/globals';
import { deadTopic, topics } from '@millrace/contract';
import { waitFor } from '@millrace/testing';
import { BusUnavailableError } from '../bus.ts';
import { collect, patience, postgresFixture } from '../testing/postgres-fixture.ts';

const fixture = postgresFixture();
const { open, query, numbers, lagOf } = fixture;

describe('the log in PostgreSQL', () => {
  it('gives out offsets without gaps that become visible in order, whoever publishes', async () => {
    const offsets: [number[], number[]] = [[], []];
    await open().subscribe('g', fixture.topic, (message) => {
      offsets[message.partition as 0 | 1].push(Number(message.offset));
      return Promise.resolve();
    });
    await Promise.all(
      [0, 1, 2, 3].map(async (publisher) => {
        const bus = open();
        // Both partitions in either order: locks taken in the order of the batch would deadlock.
        const [first, second] = publisher % 2 === 0 ? [0, 1] : [1, 0];
        for (let round = 0; round < 25; round++) {
          await bus.publish([...numbers(0, 3, first), ...numbers(0, 3, second)]);
        }
      }),
    );
    await waitFor(() => offsets[0].length === 300 && offsets[1].length === 300, patience);
    const expected = Array.from({ length: 300 }, (_, i) => i);
    expect(offsets).toEqual([expected, expected]);
  });

  it('leaves no gap where a publisher failed', async () => {
    const [bad, good] = [open(), open()];
    const { values, handle } = collect();
    await good.subscribe('g', fixture.topic, handle);
    await query('begin');
    await query('select * from bus_partitions where topic = $1 for update', [fixture.topic]);
    const failing = expect(bad.publish(numbers(0, 1))).rejects.toThrow(BusUnavailableError);
    const victim = await waitFor(async () => (await waitingForLocks())[0], patience);
    const waiting = good.publish(numbers(1, 2));
    await waitFor(async () => (await waitingForLocks()).length === 2, patience);
    await query('select pg_terminate_backend($1)', [victim]);
    await failing;
    await query('commit');
    await waiting;
    await bad.publish(numbers(2, 3));
    await waitFor(() => values.length === 2, patience);
    expect(values).toEqual([1, 2]);
    expect(
      await query('select log_offset::integer from bus_messages where partition_id = $1', [await idOf(0)]),
    ).toEqual([{ log_offset: 0 }, { log_offset: 1 }]);
  });

  it('reads large bodies in pages of bounded size', async () => {
    const bus = open();
    const body = 'x'.repeat(600_000);
    await bus.publish(
      [0, 1, 2, 3, 4, 5].map((i) => ({ topic: fixture.topic, key: 'k', value: `${i}${body}` })),
    );
    const seen: string[] = [];
    await bus.subscribe('g', fixture.topic, (message) => {
      seen.push(message.value.slice(1, 2));
      return Promise.resolve();
    });
    await waitFor(() => seen.length === 6, patience);
    expect(seen).toEqual(['0', '1', '2', '3', '4', '5']);
  });

  it("creates the contract's topics with their dead twins, and adds partitions", async () => {
    const bus = open();
    await bus.ensureTopics();
    await bus.ensureTopics();
    for (const { name, partitions } of Object.values(topics)) {
      expect(await bus.partitions(name)).toBe(partitions);
      expect(await bus.partitions(deadTopic(name))).toBe(partitions);
    }
    await bus.ensureTopics({ [fixture.topic]: 5 });
    expect(await open().partitions(fixture.topic)).toBe(5);
  });
});

describe('retention', () => {
  it('deletes what is old, and lets a reader go on at the first message that is kept', async () => {
    const bus = open();
    await bus.publish([...numbers(0, 5), ...numbers(10, 12, 1)]);
    await age(0, 3);
    expect(await bus.prune(new Date(Date.now() - 60_000))).toMatchObject({ messages: 3 });
    expect(await bus.prune(new Date(Date.now() - 60_000))).toMatchObject({ messages: 0 });
    expect(await lagOf(bus, 'g')).toEqual([2, 2]);
    const { values, handle } = collect();
    await bus.subscribe('g', fixture.topic, handle);
    await waitFor(() => values.length === 4, patience);
    expect(values.filter((value) => value < 10)).toEqual([3, 4]);
    // Offsets are never given out again.
    await bus.publish(numbers(5, 6));
    await waitFor(() => values.includes(5), patience);
    expect(
      await query('select max(log_offset)::integer from bus_messages where partition_id = $1', [
        await idOf(0),
      ]),
    ).toEqual([{ max: 5 }]);
  });

  it('stops at the first young message, though an older one lies behind it', async () => {
    const bus = open();
    await bus.publish(numbers(0, 4));
    await age(0, 1);
    await query(
      `update bus_messages set published_at = now() - interval '1 hour' where partition_id = $1 and log_offset = 2`,
      [await idOf(0)],
    );
    expect(await bus.prune(new Date(Date.now() - 60_000))).toMatchObject({ messages: 1 });
    expect(await lagOf(bus, 'g')).toEqual([3, 0]);
  });

  it('calls onGap of a member whose messages went unread: on start, and while it waits', async () => {
    const bus = open();
    const gaps: string[] = [];
    const leave = await bus.subscribe('g', fixture.topic, () => Promise.resolve());
    await leave.close();
    await bus.publish(numbers(0, 2));
    await age(0, 2);
    await bus.prune(new Date(Date.now() - 60_000));
    const { values, handle } = collect();
    await bus.subscribe('g', fixture.topic, handle, {
      onGap: (partition) => gaps.push(`start ${partition}`),
    });
    expect(gaps).toEqual(['start 0']);

    // Published behind the buses' back, so that nobody is woken; all of it is gone when the next message comes.
    await query('update bus_partitions set next_offset = 7, first_offset = 7 where id = $1', [await idOf(0)]);
    await bus.publish(numbers(7, 8));
    await waitFor(() => values.length === 1, patience);
    expect(values).toEqual([7]);
    expect(gaps).toEqual(['start 0', 'start 0']);
  });

  it('forgets groups that had no member for a day, and no others', async () => {
    const bus = open();
    await bus.publish(numbers(0, 1));
    const { values, handle } = collect();
    const old = await bus.subscribe('old', fixture.topic, handle);
    await bus.subscribe('alive', fixture.topic, handle);
    const recent = await bus.subscribe('recent', fixture.topic, handle);
    await waitFor(() => values.length === 3, patience);
    await Promise.all([old.close(), recent.close()]);
    await waitFor(async () => String(await lagOf(bus, 'alive')) === '0,0', patience);
    await query(
      `update bus_groups set seen_at = now() - interval '25 hours' where topic = $1 and name <> 'recent'`,
      [fixture.topic],
    );
    expect(await bus.prune(new Date(0))).toEqual({ messages: 0, groups: 1 });
    expect(await lagOf(bus, 'old')).toEqual([1, 0]);
    expect(await lagOf(bus, 'alive')).toEqual([0, 0]);
    expect(await lagOf(bus, 'recent')).toEqual([0, 0]);
  });
});

/** Backends of this database that wait for a lock (asked inside a transaction, where pg_stat_activity stands still). */
const waitingForLocks = async (): Promise<number[]> => {
  const rows = await query<{ pid: number }>(
    `select distinct pid from pg_locks where not granted and pid in (
       select l.pid from pg_locks l join pg_database d on d.oid = l.database
       where d.datname = current_database() and l.relation = 'bus_partitions'::regclass
     )`,
  );
  return rows.map((row) => row.pid);
};

const idOf = async (partition: number): Promise<number> => {
  const rows = await query<{ id: number }>(
    'select id from bus_partitions where topic = $1 and partition = $2',
    [fixture.topic, partition],
  );
  return rows[0]?.id ?? -1;
};

/** Makes the first messages of a partition an hour old. */
const age = async (partition: number, messages: number): Promise<void> => {
  await query(
    `update bus_messages set published_at = now() - interval '1 hour' where partition_id = $1 and log_offset < $2`,
    [await idOf(partition), messages],
  );
};
