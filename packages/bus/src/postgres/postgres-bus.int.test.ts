import { describe, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { BusUnavailableError, type Delivery } from '../bus.ts';
import { collect, eventsOnly, patience, postgresFixture, shortLeases } from '../testing/postgres-fixture.ts';

const fixture = postgresFixture();
const { open, query, numbers, lagOf } = fixture;

describe('the bus in PostgreSQL: members', () => {
  it('lets a member that was away too long change nothing of its successor', async () => {
    const away = open({ times: shortLeases, cuttable: true });
    // Long enough not to be missed itself on a loaded machine.
    const heir = open({ times: { ...shortLeases, leaseMs: 60_000 } });
    const gaps: number[] = [];
    const stuck: Delivery[] = [];
    let finish = (): void => undefined;
    await heir.publish(numbers(0, 2));
    const old = await away.subscribe(
      'g',
      fixture.topic,
      (_message, delivery) => {
        stuck.push(delivery);
        return new Promise((resolve) => {
          finish = resolve;
        });
      },
      { onGap: (partition) => gaps.push(partition) },
    );
    await waitFor(() => stuck.length === 1, patience);
    fixture.proxy.cut();
    const { values, handle } = collect();
    const successor = await heir.subscribe('g', fixture.topic, handle);
    await waitFor(() => values.length === 2, patience);
    await waitFor(() => stuck[0]?.signal.aborted, patience);
    await waitFor(async () => String(await lagOf(heir, 'g')) === '0,0', patience);

    fixture.proxy.mend();
    finish();
    await expect(stuck[0]?.commit()).rejects.toThrow(BusUnavailableError);
    // It joins again by itself, and learns of what passed it by once it gets the partition back.
    await waitFor(() => old.assigned().length === 1, patience);
    await successor.close();
    await waitFor(() => old.assigned().length === 2, patience);
    expect(gaps).toEqual([0]);
    expect(await lagOf(heir, 'g')).toEqual([0, 0]);
    expect(stuck).toHaveLength(1);
  });

  it('refuses a commit of an earlier epoch, though its member has the partition again', async () => {
    const bus = open();
    const deliveries: Delivery[] = [];
    await bus.publish(numbers(0, 1));
    await bus.subscribe('g', fixture.topic, (_message, delivery) => {
      deliveries.push(delivery);
      // Never done by itself: nothing but the refused commit could move the offset.
      return new Promise((resolve) => delivery.signal.addEventListener('abort', () => resolve()));
    });
    await waitFor(() => deliveries.length === 1, patience);
    await query('update bus_offsets set epoch = epoch + 1');
    await expect(deliveries[0]?.commit()).rejects.toThrow(BusUnavailableError);
    expect(await lagOf(bus, 'g')).toEqual([1, 0]);
  });

  it('wakes members of other processes by events, not by sweeps', async () => {
    const [one, two, three] = [open(), open(), open()];
    const { values, handle } = collect();
    const first = await one.subscribe('g', fixture.topic, handle);
    const second = await two.subscribe('g', fixture.topic, handle);
    await waitFor(() => first.assigned().length === 1 && second.assigned().length === 1, patience);
    await three.publish([...numbers(0, 1, 0), ...numbers(1, 2, 1)]);
    await waitFor(() => values.length === 2, patience);
    await first.close();
    await waitFor(() => second.assigned().length === 2, patience);
  });

  it('frees at once what an earlier boot left behind', async () => {
    const crashed = open({ bootId: 'before', cuttable: true });
    const { values, handle } = collect();
    await crashed.subscribe('g', fixture.topic, handle);
    fixture.proxy.cut();
    const bus = open({ bootId: 'after' });
    await bus.evictOtherBoots();
    const subscription = await bus.subscribe('g', fixture.topic, handle);
    expect(subscription.assigned()).toEqual([0, 1]);
    await bus.evictOtherBoots();
    await bus.publish(numbers(0, 1));
    await waitFor(() => values.length === 1, patience);
    await waitFor(async () => String(await lagOf(bus, 'g')) === '0,0', patience);
  });
});

describe('the bus in PostgreSQL: trouble', () => {
  it('says that it is unavailable, and recovers by itself', async () => {
    const [bus, other] = [open({ times: shortLeases, cuttable: true }), open()];
    const { values, handle } = collect();
    const subscription = await bus.subscribe('g', fixture.topic, handle);
    await bus.publish(numbers(0, 1));
    await waitFor(() => values.length === 1, patience);
    await waitFor(async () => String(await lagOf(other, 'g')) === '0,0', patience);
    fixture.proxy.cut();
    await expect(bus.publish(numbers(1, 2))).rejects.toThrow(BusUnavailableError);
    await expect(bus.lag('g', fixture.topic)).rejects.toThrow(BusUnavailableError);
    await expect(bus.subscribe('h', fixture.topic, handle)).rejects.toThrow(BusUnavailableError);
    await other.publish(numbers(2, 3));
    await waitFor(() => subscription.assigned().length === 0, patience);
    fixture.proxy.mend();
    await waitFor(() => values.includes(2), patience);
    await bus.publish(numbers(3, 4));
    await waitFor(() => values.includes(3), patience);
    expect(values).toEqual([0, 2, 3]);
  });

  it('goes on when the server ends its connections, without waiting for a sweep', async () => {
    const [bus, other] = [open({ times: eventsOnly }), open()];
    const { values, handle } = collect();
    await bus.subscribe('g', fixture.topic, handle);
    await listeners(1);
    await query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'millrace-bus'`,
    );
    await listeners(0);
    await listeners(1);
    // The first statements may still meet connections whose end has not been noticed.
    await waitFor(async () => {
      await other.publish(numbers(0, 1));
      return true;
    }, patience);
    await waitFor(() => values.length >= 1, patience);
    await waitFor(async () => String(await lagOf(other, 'g')) === '0,0', patience);
  });

  it('closes in time though the server is gone', async () => {
    const bus = open({ times: shortLeases, cuttable: true });
    await bus.subscribe('g', fixture.topic, () => Promise.resolve());
    fixture.proxy.cut();
    await bus.close();
    await expect(bus.publish(numbers(0, 1))).rejects.toMatchObject({ code: 'closed' });
  });

  it('uses five connections at most', async () => {
    const bus = open({ cuttable: true });
    const { values, handle } = collect();
    const groups = ['a', 'b', 'c', 'd', 'e', 'f'];
    await Promise.all(groups.map((group) => bus.subscribe(group, fixture.topic, handle, { concurrency: 2 })));
    let most = 0;
    for (let round = 0; round < 10; round++) {
      const publishing = Promise.all([0, 1, 2, 3].map((i) => bus.publish(numbers(0, 10, i % 2))));
      most = Math.max(most, fixture.proxy.connections);
      await publishing;
    }
    await waitFor(() => values.length === 6 * 400, patience);
    expect(most).toBeLessThanOrEqual(5);
    expect(most).toBeGreaterThan(1);
  });

  it('ignores what others put into its channel', async () => {
    const bus = open();
    const { values, handle } = collect();
    await bus.subscribe('g', fixture.topic, handle);
    await listeners(1);
    for (const payload of ['', 'no json', 'null', '[]', '{"topic":1}']) {
      await query('select pg_notify($1, $2)', ['millrace_bus', payload]);
    }
    await open().publish(numbers(0, 1));
    await waitFor(() => values.length === 1, patience);
  });
});

/** Waits until so many connections listen. */
const listeners = async (count: number): Promise<void> => {
  await waitFor(async () => {
    const rows = await query<{ count: number }>(
      `select count(*)::integer from pg_stat_activity
       where datname = current_database() and query = 'listen millrace_bus'`,
    );
    return rows[0]?.count === count;
  }, patience);
};
