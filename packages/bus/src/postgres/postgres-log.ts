import { type Clock, type Logger } from '@millrace/platform';
import { BusRequestError } from '../bus.ts';
import { type OffsetCommit } from '../delivery/offset-committer.ts';
import { type LogMessage, type LogStore, type Member, type PartitionState } from '../log/log-store.ts';
import { type PlacedMessage } from '../message.ts';
import { Publisher } from '../publisher.ts';
import { type Connections } from './connections.ts';
import { EventChannel } from './listener.ts';
import * as sql from './statements.ts';

export interface PostgresLogOptions {
  connectionString: string;
  connections: Connections;
  bootId: string;
  clock: Clock;
  logger: Logger;
}

/** What goes into one statement at most. */
const statementLimits = { messages: 1_000, bytes: 8 * 1024 * 1024 };

/** The log in PostgreSQL's tables `bus_*` (migration `000002_bus.sql`). Leases run by database time. */
export class PostgresLog implements LogStore {
  readonly #connections: Connections;
  readonly #bootId: string;
  readonly #events: EventChannel;
  readonly #publisher: Publisher<PlacedMessage & { partitionId: number }>;
  /** Ids of a topic's partitions by their number. Partitions are never removed. */
  readonly #catalog = new Map<string, number[]>();

  constructor({ connections, bootId, ...options }: PostgresLogOptions) {
    this.#connections = connections;
    this.#bootId = bootId;
    this.#events = new EventChannel({ ...options, relaxed: connections.relaxed });
    this.#publisher = new Publisher((batch) => this.#append(batch), statementLimits);
  }

  async partitions(topic: string): Promise<number> {
    return (await this.#ids(topic)).length;
  }

  async append(messages: readonly PlacedMessage[]): Promise<void> {
    const placed: (PlacedMessage & { partitionId: number })[] = [];
    for (const message of messages) {
      const partitionId = (await this.#ids(message.topic))[message.partition];
      if (partitionId === undefined) throw new BusRequestError('invalid_partition', 'no such partition');
      placed.push({ ...message, partitionId });
    }
    await this.#publisher.publish(placed);
    for (const topic of new Set(messages.map((message) => message.topic))) this.#events.emit({ topic });
  }

  async join(member: Member, from: 'earliest' | 'latest', leaseMs: number): Promise<void> {
    const values = [member.group, member.topic, member.id, this.#bootId, from === 'latest', leaseMs];
    await this.#connections.relaxed.run(sql.join, values);
  }

  async renew(member: Member, leaseMs: number): Promise<string[] | undefined> {
    const rows = await this.#connections.relaxed.run<{ id: string }>(sql.renew, [member.id, leaseMs]);
    // A living member sees itself at least.
    return rows.length === 0 ? undefined : rows.map((row) => row.id);
  }

  survey(member: Member): Promise<PartitionState[]> {
    return this.#connections.relaxed.run<PartitionState>(sql.survey, [member.id]);
  }

  async claim(member: Member, count: number): Promise<number> {
    return (await this.#connections.relaxed.run(sql.claim, [member.id, count])).length;
  }

  async release(member: Member, partitions: readonly number[]): Promise<void> {
    await this.#connections.relaxed.run(sql.release, [member.id, partitions]);
  }

  async leave(member: Member): Promise<void> {
    await this.#connections.relaxed.run(sql.leave, [member.id]);
  }

  fetch: LogStore['fetch'] = (topic, wanted, limits) =>
    this.#connections.relaxed.run<LogMessage>(sql.fetch, [
      topic,
      wanted.map((want) => want.partition),
      wanted.map((want) => want.offset),
      limits.messages,
      limits.bytes,
    ]);

  async commit(member: Member, commits: readonly OffsetCommit[]): Promise<ReadonlySet<number>> {
    const rows = await this.#connections.relaxed.run<{ partition: number }>(sql.commit, [
      member.id,
      commits.map((commit) => commit.partition),
      commits.map((commit) => commit.epoch),
      commits.map((commit) => commit.next),
    ]);
    return new Set(rows.map((row) => row.partition));
  }

  async lag(group: string, topic: string): Promise<Map<number, number>> {
    await this.#ids(topic);
    const rows = await this.#connections.relaxed.run<{ partition: number; messages: number }>(sql.lag, [
      group,
      topic,
    ]);
    return new Map(rows.map((row) => [row.partition, row.messages]));
  }

  listen: LogStore['listen'] = (listener) => this.#events.listen(listener);

  announce({ topic, group }: Member): void {
    this.#events.emit({ topic, group });
  }

  async close(): Promise<void> {
    await this.#publisher.idle();
    await this.#events.close();
    await this.#connections.close();
  }

  async #append(batch: readonly (PlacedMessage & { partitionId: number })[]): Promise<void> {
    await this.#connections.durable.run(sql.append, [
      batch.map((message) => message.partitionId),
      batch.map((message) => message.key),
      batch.map((message) => message.value),
      batch.map((message) => JSON.stringify(message.headers)),
    ]);
  }

  async #ids(topic: string): Promise<number[]> {
    const known = this.#catalog.get(topic);
    if (known) return known;
    const rows = await this.#connections.relaxed.run<{ id: number }>(sql.partitionsOfTopic, [topic]);
    if (rows.length === 0) throw new BusRequestError('unknown_topic', `there is no topic ${topic}`);
    const ids = rows.map((row) => row.id);
    this.#catalog.set(topic, ids);
    return ids;
  }
}
