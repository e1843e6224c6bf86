import { describe, expect, it, jest } from '@jest/globals';
import { topics } from '@millrace/contract';
import { createMetrics, silentLogger } from '@millrace/platform';
import { captureLogger, createTestCertificate, waitFor } from '@millrace/testing';
import kafkajs, { type Admin, type Kafka, type Producer } from 'kafkajs';
import { missingForKafka } from '../../../../dev/kafka/jars.ts';
import { describeWith } from '../../../../dev/real-part.ts';
import { type Delivery, type Subscription } from '../bus.ts';
import { consume } from '../consumer.ts';
import { replayDead } from '../dead-letters.ts';
import { shippedTopics } from '../topics.ts';
import { collect, kafkaFixture, patience, quickTimes, topicSettings } from '../testing/kafka-fixture.ts';
import { createKafkaBus, type KafkaBus } from './kafka-bus.ts';

jest.setTimeout(120_000);

describeWith(missingForKafka(), 'the bus on Kafka', () => {
  const fixture = kafkaFixture();
  const { open, numbers, lagOf } = fixture;

  /** Kafka without our adapter. */
  const foreign = (): Kafka =>
    new kafkajs.Kafka({ brokers: [fixture.broker.address], logLevel: kafkajs.logLevel.NOTHING });

  async function withAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    const admin = foreign().admin();
    await admin.connect();
    return work(admin).finally(() => admin.disconnect());
  }

  /** Deletes what retention would delete one day: all before this offset of partition 0. */
  const deleteBefore = (offset: string): Promise<void> =>
    withAdmin(async (admin) => {
      await admin.fetchTopicOffsets(fixture.topic);
      await admin.deleteTopicRecords({ topic: fixture.topic, partitions: [{ partition: 0, offset }] });
    });

  async function withProducer<T>(work: (producer: Producer) => Promise<T>): Promise<T> {
    const producer = foreign().producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner });
    await producer.connect();
    return work(producer).finally(() => producer.disconnect());
  }

  describe('topics', () => {
    it('creates those of the contract and their dead twins, and then nothing more', async () => {
      const bus = open();
      expect(await bus.ensureTopics()).toEqual([]);
      expect(await bus.ensureTopics()).toEqual([]);
      for (const [name, { partitions }] of Object.entries(shippedTopics())) {
        expect(await bus.partitions(name)).toBe(partitions);
      }
    });

    it('may be created from several places at once', async () => {
      const wanted = { [`${fixture.topic}.a`]: topicSettings, [`${fixture.topic}.b`]: topicSettings };
      await Promise.all([open(), open(), open()].map((bus) => bus.ensureTopics(wanted)));
      expect(await open().partitions(`${fixture.topic}.b`)).toBe(2);
    });

    it('tells in what an existing topic differs, and leaves it as it is', async () => {
      const bus = open();
      const wanted = { [fixture.topic]: { partitions: 5, retentionMs: 1_000_000, compacted: true } };
      const differences = [
        { topic: fixture.topic, setting: 'cleanup.policy', is: 'delete', wanted: 'compact,delete' },
        { topic: fixture.topic, setting: 'retention.ms', is: '3600000', wanted: '1000000' },
        { topic: fixture.topic, setting: 'partitions', is: '2', wanted: '5' },
      ];
      expect(await bus.ensureTopics(wanted)).toEqual(differences);
      expect(await bus.ensureTopics(wanted)).toEqual(differences);
    });

    it('sees added partitions, as a publisher and as a member', async () => {
      const bus = open({ times: { metadataMs: 300 } });
      const { values, handle } = collect();
      const subscription = await bus.subscribe('g', fixture.topic, handle, { concurrency: 4 });
      await bus.publish(numbers(0, 1));
      await withAdmin((admin) =>
        admin.createPartitions({ topicPartitions: [{ topic: fixture.topic, count: 4 }] }),
      );
      await waitFor(async () => (await bus.partitions(fixture.topic)) === 4, patience);
      // At first the producer may know less than whoever chose the partition: then it says so.
      await waitFor(async () => {
        await bus.publish(numbers(1, 2, 3));
        return true;
      }, patience);
      await waitFor(() => subscription.assigned().length === 4, patience);
      await waitFor(() => values.includes(0) && values.includes(1), patience);
    });
  });

  describe('lag', () => {
    it('counts all that is kept for a group that was reset to the earliest message', async () => {
      const bus = open();
      const { values, handle } = collect();
      const subscription = await bus.subscribe('g', fixture.topic, handle);
      await bus.publish(numbers(0, 3));
      await waitFor(async () => values.length === 3 && (await lagOf(bus, 'g'))[0] === 0, patience);
      await subscription.close();
      // Commits -2 instead of an offset.
      await withAdmin(async (admin) => {
        await admin.resetOffsets({ groupId: `${fixture.topic}:g`, topic: fixture.topic, earliest: true });
      });
      expect(await lagOf(bus, 'g')).toEqual([3, 0]);
      // And begins there, even a group that would begin at the tail.
      await bus.subscribe('g', fixture.topic, handle, { from: 'latest' });
      await waitFor(() => values.length === 6, patience);
    });

    it('is exported for the partitions that this process owns', async () => {
      const metrics = createMetrics({ service: 'test' });
      const bus = open({ metrics, times: { lagMs: 50 } });
      const slot = Promise.withResolvers<undefined>();
      await bus.subscribe('g', fixture.topic, () => Promise.resolve(), { pause: () => slot.promise });
      const shown = async (lag: number): Promise<void> => {
        const line = `millrace_bus_lag_messages{topic="${fixture.topic}",service="test"} ${lag}`;
        await waitFor(async () => (await metrics.render()).includes(line), patience);
      };
      await bus.publish([...numbers(0, 3, 0), ...numbers(3, 5, 1)]);
      await shown(5);
      slot.resolve(undefined);
      await shown(0);
    });
  });

  describe('what retention and compaction delete', () => {
    it('tells a member that messages passed it by, and goes on with those that are kept', async () => {
      const bus = open();
      const first = collect();
      const subscription = await bus.subscribe('g', fixture.topic, first.handle);
      await bus.publish(numbers(0, 2));
      await waitFor(async () => first.values.length === 2 && (await lagOf(bus, 'g'))[0] === 0, patience);
      await subscription.close();
      await bus.publish(numbers(2, 6));
      await deleteBefore('4');
      expect(await lagOf(bus, 'g')).toEqual([2, 0]);
      const [gaps, second] = [[] as number[], collect()];
      await bus.subscribe('g', fixture.topic, second.handle, { onGap: (partition) => gaps.push(partition) });
      await waitFor(() => second.values.length === 2, patience);
      expect(second.values).toEqual([4, 5]);
      expect(gaps).toEqual([0]);
    });

    it('tells it too while it reads', async () => {
      const bus = open();
      const slot = Promise.withResolvers<undefined>();
      const gaps: number[] = [];
      const { values, handle } = collect();
      // More than what is read ahead: the rest is fetched when it is gone.
      const body = 'x'.repeat(500_000);
      const publish = (key: string): Promise<void> =>
        bus.publish([{ topic: fixture.topic, key, value: body, partition: 0 }]);
      await bus.subscribe(
        'g',
        fixture.topic,
        async (message, delivery) => {
          await handle({ ...message, value: message.key }, delivery);
          await slot.promise;
        },
        { onGap: (partition) => gaps.push(partition) },
      );
      for (let i = 0; i < 10; i++) await publish(String(i));
      await waitFor(() => values.length === 1, patience);
      await deleteBefore('9');
      slot.resolve(undefined);
      await waitFor(() => values.includes(9), patience);
      expect(gaps).toEqual([0]);
      expect(values).not.toContain(8);
    });

    it('takes the holes of a compacted topic for none', async () => {
      const topic = `${fixture.topic}.state`;
      const config = {
        'cleanup.policy': 'compact',
        'segment.ms': '100',
        'min.cleanable.dirty.ratio': '0.01',
      };
      const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
      await withAdmin((admin) =>
        admin.createTopics({ topics: [{ topic, numPartitions: 1, configEntries }], waitForLeaders: false }),
      );
      const bus = open();
      const keys = ['a', 'b', 'c'];
      const offsetsSeen = async (): Promise<string[]> => {
        const seen: string[] = [];
        const gaps: number[] = [];
        const group = `g-${Math.random()}`;
        const subscription = await bus.subscribe(
          group,
          topic,
          ({ key, value }) => {
            seen.push(`${key}${value}`);
            return Promise.resolve();
          },
          { onGap: (partition) => gaps.push(partition) },
        );
        await waitFor(async () => (await bus.lag(group, topic)).get(0) === 0, patience);
        await subscription.close();
        expect(gaps).toEqual([]);
        return seen;
      };
      let round = 0;
      // Only closed segments are compacted, and a segment closes when the next message comes after its time.
      await waitFor(async () => {
        await bus.publish(keys.map((key) => ({ topic, key, value: round })));
        round += 1;
        return round > 30 && (await offsetsSeen()).length < 2 * round;
      }, patience);
      const seen = await offsetsSeen();
      expect(seen.slice(-3)).toEqual(keys.map((key) => `${key}${round - 1}`));
    });
  });

  describe('messages that are not ours', () => {
    it('are read whatever they lack', async () => {
      await withProducer(async (producer) => {
        await producer.send({
          topic: fixture.topic,
          messages: [
            { key: null, value: 'no key', partition: 0 },
            { key: 'k', value: null, partition: 0 },
            {
              key: Buffer.from([0xff]),
              value: Buffer.from([0xfe]),
              partition: 0,
              headers: { h: ['1', '2'] },
            },
          ],
        });
      });
      const seen: object[] = [];
      await open().subscribe('g', fixture.topic, ({ key, value, headers }) => {
        seen.push({ key, value, headers });
        return Promise.resolve();
      });
      await waitFor(() => seen.length === 3, patience);
      expect(seen).toEqual([
        { key: '', value: 'no key', headers: {} },
        { key: 'k', value: '', headers: {} },
        { key: '\ufffd', value: '\ufffd', headers: { h: '2' } },
      ]);
    });

    it('are parked and counted when they cannot be parsed, on every topic, and hold nobody up', async () => {
      const [bus, metrics] = [open(), createMetrics({ service: 'test' })];
      await bus.ensureTopics();
      const good: Record<string, object> = {
        [topics.encodeTasks.name]: { v: 1, taskId: 'tsk_1', kind: 'probe' },
        [topics.videoEvents.name]: { v: 1, eventId: 'e', type: 't', projectId: 'p', videoId: 'v' },
        [topics.playbackState.name]: { v: 1, kind: 'heartbeat', at: '2026-01-01T00:00:00.000Z' },
        [topics.playbackConfirmations.name]: {
          ...{ v: 1, bootId: 'b', confirmedUpTo: '2026-01-01T00:00:00.000Z', ended: false },
        },
        [topics.playbackUsage.name]: { v: 1, bootId: 'b', sequence: 1, accountId: 'a', views: [] },
      };
      await withProducer(async (producer) => {
        for (const topic of Object.keys(good)) {
          const bodies = ['not json', '{"v":99}', JSON.stringify(good[topic])];
          await producer.send({ topic, messages: bodies.map((value) => ({ key: 'same', value })) });
        }
      });
      for (const topic of Object.values(topics)) {
        const handled: unknown[] = [];
        await consume(bus, {
          group: 'poison',
          topic: topic as typeof topics.encodeTasks,
          handle: (value) => {
            handled.push(value);
            return Promise.resolve();
          },
          logger: silentLogger,
          metrics,
        });
        await waitFor(() => handled.length === 1, patience);
        expect(handled).toEqual([good[topic.name]]);
        const counted = `millrace_bus_consumed_total{topic="${topic.name}",outcome="dead",service="test"} 2`;
        expect(await metrics.render()).toContain(counted);
        const dead = await bus.lag('nobody', `${topic.name}.dead`);
        expect([...dead.values()].reduce((sum, messages) => sum + messages, 0)).toBe(2);
      }
      // The one that was JSON can be tried again; it dies once more, the other one is no message at all.
      const replayed = await replayDead(bus, topics.encodeTasks.name, { logger: silentLogger });
      expect(replayed).toEqual({ replayed: 1, skipped: 1 });
      expect(await replayDead(bus, topics.videoEvents.name, { logger: silentLogger })).toEqual({
        replayed: 1,
        skipped: 1,
      });
    });

    it('are refused alone when the broker takes them for too large', async () => {
      const topic = `${fixture.topic}.small`;
      const configEntries = [{ name: 'max.message.bytes', value: '2000' }];
      await withAdmin((admin) =>
        admin.createTopics({ topics: [{ topic, configEntries }], waitForLeaders: false }),
      );
      const bus = open();
      await waitFor(() => bus.partitions(topic), patience);
      await bus.publish([{ topic, key: 'k', value: 'fits' }]);
      const outcomes = await Promise.allSettled([
        bus.publish(numbers(0, 1)),
        bus.publish([{ topic, key: 'k', value: 'x'.repeat(3_000) }]),
        bus.publish(numbers(1, 2)),
      ]);
      expect(outcomes.map((outcome) => outcome.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect(outcomes[1]).toMatchObject({ reason: { code: 'message_too_large' } });
      const { values, handle } = collect();
      await bus.subscribe('g', fixture.topic, handle);
      await waitFor(() => values.length === 2, patience);
      await bus.publish([{ topic, key: 'k', value: 'fits too' }]);
    });
  });

  describe('members', () => {
    it('keep their place at the tail over a pause, though they have handled nothing', async () => {
      const bus = open();
      const { values, handle } = collect();
      await bus.publish(numbers(0, 1));
      const subscription = await bus.subscribe('g', fixture.topic, handle, { from: 'latest' });
      await subscription.close();
      await bus.publish(numbers(1, 2));
      await bus.subscribe('g', fixture.topic, handle, { from: 'latest' });
      await waitFor(() => values.length === 1, patience);
      expect(values).toEqual([1]);
    });

    it('work for several session timeouts on what they claimed, once, while the group stays calm', async () => {
      const log = captureLogger();
      const times = { sessionMs: 2_000 };
      const starts: number[] = [];
      const done = Promise.withResolvers<undefined>();
      const workers = await Promise.all(
        [
          open({ logger: log.logger, times: { sessionMs: 1_500 } }),
          open({ times: { sessionMs: 1_500 } }),
        ].map(async (bus) => {
          let busy: Promise<void> | undefined;
          // As an encoder does: the message is a permit, the work goes on after its commit.
          const subscription = await bus.subscribe(
            'g',
            fixture.topic,
            async (message, delivery) => {
              await delivery.commit();
              starts.push(Number(message.value));
              busy = done.promise;
            },
            { pause: () => busy },
          );
          return subscription;
        }),
      );
      await waitFor(() => workers.every((worker) => worker.assigned().length === 1), patience);
      const assignments = (): number =>
        log.lines.filter(({ message }) => message === 'partitions assigned').length;
      const before = assignments();
      await open().publish([...numbers(0, 2, 0), ...numbers(2, 4, 1)]);
      await waitFor(() => starts.length === 2, patience);
      const sessions = performance.now() + 3 * times.sessionMs;
      await waitFor(() => performance.now() > sessions, patience);
      expect(starts.toSorted()).toEqual([0, 2]);
      // A starved machine may miss one session; a group that rebalances in a loop has several a session.
      expect(assignments() - before).toBeLessThan(3);
      expect(workers.map((worker) => worker.assigned().length)).toEqual([1, 1]);
      done.resolve(undefined);
      await waitFor(() => starts.length === 4, patience);
      expect(starts.toSorted()).toEqual([0, 1, 2, 3]);
    });

    it('keep what they have when others come, as far as each is due as much', async () => {
      const topic = await fixture.createTopic({ partitions: 6 });
      const join = (): Promise<Subscription> => open().subscribe('g', topic, () => Promise.resolve());
      const shares = async (members: readonly Subscription[]): Promise<(readonly number[])[]> => {
        const settled = (): boolean =>
          members.every((member) => member.assigned().length === 6 / members.length) &&
          new Set(members.flatMap((member) => [...member.assigned()])).size === 6;
        await waitFor(settled, patience);
        return members.map((member) => member.assigned());
      };
      const members = [await join(), await join()];
      const before = await shares(members);
      const after = await shares([...members, await join()]);
      before.forEach((share, i) => expect(share).toEqual(expect.arrayContaining([...(after[i] ?? [])])));
    });

    it('go on undisturbed with the partitions that they keep when others come and go', async () => {
      const [one, two, publisher] = [open(), open(), open()];
      const finish = Promise.withResolvers<undefined>();
      const running: { partition: number; delivery: Delivery }[] = [];
      await publisher.publish([...numbers(0, 2, 0), ...numbers(2, 4, 1)]);
      const subscription = await one.subscribe(
        'g',
        fixture.topic,
        async ({ partition }, delivery) => {
          running.push({ partition, delivery });
          await finish.promise;
        },
        { concurrency: 2 },
      );
      await waitFor(() => running.length === 2, patience);
      const other = await two.subscribe('g', fixture.topic, () => Promise.resolve());
      await waitFor(() => subscription.assigned().length === 1, patience);
      const [kept] = subscription.assigned();
      const [mine, moved] = [kept, 1 - (kept ?? 0)].map((partition) =>
        running.find((handler) => handler.partition === partition),
      );
      expect(moved?.delivery.signal.aborted).toBe(true);
      expect(mine?.delivery.signal.aborted).toBe(false);
      await expect(moved?.delivery.commit()).rejects.toMatchObject({ code: 'bus_unavailable' });
      await mine?.delivery.commit();
      await other.close();
      await waitFor(() => subscription.assigned().length === 2, patience);
      expect(mine?.delivery.signal.aborted).toBe(false);
      finish.resolve(undefined);
      await waitFor(async () => String(await lagOf(publisher, 'g')) === '0,0', patience);
      expect(running.filter(({ partition }) => partition === kept)).toHaveLength(2);
    });
  });

  it('costs next to nothing while it is idle', async () => {
    const bus = open({ times: { fetchMs: 500, heartbeatMs: 500 } });
    await bus.subscribe('g', fixture.topic, () => Promise.resolve());
    await bus.publish(numbers(0, 1));
    const timers = jest.spyOn(globalThis, 'setTimeout');
    const until = performance.now() + 500;
    await waitFor(() => performance.now() > until, patience);
    const started = timers.mock.calls.length;
    timers.mockRestore();
    // kafkajs unmended starts a thousand a second on each connection; waiting here itself takes some 35.
    expect(started).toBeLessThan(200);
  });

  it('comes to its brokers over TLS and SASL', async () => {
    const { username, password, cert } = fixture.login;
    const connect = (secret: string, ca: string): KafkaBus =>
      createKafkaBus({
        connection: {
          brokers: [fixture.broker.secureAddress ?? ''],
          clientId: 'test',
          tls: { ca },
          sasl: { mechanism: 'plain', username, password: secret },
        },
        logger: silentLogger,
        times: quickTimes,
      });
    const stranger = await createTestCertificate('IP:127.0.0.1');
    const [bus, intruder, suspicious] = [
      connect(password, cert),
      connect('wrong', cert),
      connect(password, stranger.cert),
    ];
    try {
      const { values, handle } = collect();
      await bus.subscribe('g', fixture.topic, handle);
      await bus.publish(numbers(0, 1));
      await waitFor(() => values.length === 1, patience);
      await expect(intruder.publish(numbers(1, 2))).rejects.toMatchObject({ code: 'bus_unavailable' });
      await expect(suspicious.publish(numbers(1, 2))).rejects.toMatchObject({ code: 'bus_unavailable' });
    } finally {
      await Promise.all([bus, intruder, suspicious].map((each) => each.close()));
    }
  });
});
