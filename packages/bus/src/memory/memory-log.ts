import { type Clock } from '@millrace/platform';
import { BusRequestError } from '../bus.ts';
import { type OffsetCommit } from '../delivery/offset-committer.ts';
import {
  type FetchLimits,
  type LogEvent,
  type LogMessage,
  type LogStore,
  type Member,
  type PartitionState,
} from '../log/log-store.ts';
import { type PlacedMessage } from '../message.ts';

interface GroupOffset {
  committed: number;
  owner: string | null;
  epoch: number;
}

interface Group {
  /** By id, in the order of joining; when their leases end, in milliseconds. */
  members: Map<string, number>;
  offsets: GroupOffset[];
}

type StoredMessage = Omit<LogMessage, 'end'>;

/** The log of unit tests: gone with the process, otherwise like the others. Several buses may share one. */
export class MemoryLog implements LogStore {
  readonly #clock: Clock;
  readonly #topics = new Map<string, StoredMessage[][]>();
  readonly #groups = new Map<string, Group>();
  readonly #listeners = new Set<(event: LogEvent) => void>();

  constructor(clock: Clock, topics: Readonly<Record<string, number>>) {
    this.#clock = clock;
    for (const [name, partitions] of Object.entries(topics)) this.createTopic(name, partitions);
  }

  createTopic(name: string, partitions: number): void {
    this.#topics.set(
      name,
      Array.from({ length: partitions }, () => []),
    );
  }

  /** Everything ever published to a topic, partition after partition. */
  read(topic: string): readonly StoredMessage[] {
    return this.#topic(topic).flat();
  }

  async partitions(topic: string): Promise<number> {
    await turn;
    return this.#topic(topic).length;
  }

  async append(messages: readonly PlacedMessage[]): Promise<void> {
    await turn;
    const timestamp = this.#clock.now();
    for (const { topic, partition, key, value, headers } of messages) {
      const log = this.#topic(topic)[partition];
      log?.push({ partition, offset: log.length, key, value, headers, timestamp });
    }
    for (const topic of new Set(messages.map((message) => message.topic))) this.#emit({ topic });
  }

  async join(member: Member, from: 'earliest' | 'latest', leaseMs: number): Promise<void> {
    await turn;
    const group = this.#group(member) ?? { members: new Map<string, number>(), offsets: [] };
    this.#groups.set(groupKey(member), group);
    for (const [partition, log] of this.#topic(member.topic).entries()) {
      group.offsets[partition] ??= { committed: from === 'latest' ? log.length : 0, owner: null, epoch: 0 };
    }
    group.members.set(member.id, this.#clock.now().getTime() + leaseMs);
  }

  async renew(member: Member, leaseMs: number): Promise<string[] | undefined> {
    await turn;
    const group = this.#group(member);
    if (!group?.members.has(member.id)) return undefined;
    const now = this.#clock.now().getTime();
    group.members.set(member.id, now + leaseMs);
    for (const [id, leaseEndsAt] of group.members) if (leaseEndsAt <= now) evict(group, id);
    return [...group.members.keys()];
  }

  async survey(member: Member): Promise<PartitionState[]> {
    await turn;
    const logs = this.#topic(member.topic);
    const offsets = this.#group(member)?.offsets ?? [];
    return offsets.map((offset, partition) => ({
      ...offset,
      partition,
      first: 0,
      end: logs[partition]?.length ?? 0,
    }));
  }

  async claim(member: Member, count: number): Promise<number> {
    await turn;
    const group = this.#group(member);
    if (!group?.members.has(member.id)) return 0;
    const free = group.offsets.filter((offset) => offset.owner === null).slice(0, count);
    for (const offset of free) {
      offset.owner = member.id;
      offset.epoch += 1;
    }
    return free.length;
  }

  async release(member: Member, partitions: readonly number[]): Promise<void> {
    await turn;
    for (const partition of partitions) {
      const offset = this.#group(member)?.offsets[partition];
      if (offset?.owner === member.id) offset.owner = null;
    }
  }

  async leave(member: Member): Promise<void> {
    await turn;
    const group = this.#group(member);
    if (group) evict(group, member.id);
  }

  async fetch(
    topic: string,
    wanted: readonly { partition: number; offset: number }[],
    limits: FetchLimits,
  ): Promise<LogMessage[]> {
    await turn;
    return wanted.flatMap(({ partition, offset }) => {
      const log = this.#topic(topic)[partition] ?? [];
      let bytes = 0;
      const page: LogMessage[] = [];
      for (const message of log.slice(offset, offset + limits.messages)) {
        if (bytes >= limits.bytes) break;
        bytes += message.value.length;
        page.push({ ...message, headers: { ...message.headers }, end: log.length });
      }
      return page;
    });
  }

  async commit(member: Member, commits: readonly OffsetCommit[]): Promise<ReadonlySet<number>> {
    await turn;
    const taken = new Set<number>();
    for (const { partition, epoch, next } of commits) {
      const offset = this.#group(member)?.offsets[partition];
      if (offset?.owner !== member.id || offset.epoch !== epoch) continue;
      offset.committed = Math.max(offset.committed, next);
      taken.add(partition);
    }
    return taken;
  }

  async lag(group: string, topic: string): Promise<Map<number, number>> {
    await turn;
    const offsets = this.#group({ group, topic })?.offsets ?? [];
    return new Map(
      this.#topic(topic).map((log, partition) => [
        partition,
        log.length - (offsets[partition]?.committed ?? 0),
      ]),
    );
  }

  listen(listener: (event: LogEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  announce({ topic, group }: Member): void {
    this.#emit({ topic, group });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #emit(event: LogEvent): void {
    // Not at once: nothing may depend on a publisher's call stack, and handlers that publish must not starve timers.
    setImmediate(() => {
      for (const listener of this.#listeners) listener(event);
    });
  }

  #topic(name: string): StoredMessage[][] {
    const topic = this.#topics.get(name);
    if (!topic) throw new BusRequestError('unknown_topic', `there is no topic ${name}`);
    return topic;
  }

  #group(of: { group: string; topic: string }): Group | undefined {
    return this.#groups.get(groupKey(of));
  }
}

/** Every answer comes a turn later, as from a server. */
const turn = Promise.resolve();

const groupKey = ({ group, topic }: { group: string; topic: string }): string =>
  JSON.stringify([group, topic]);

function evict(group: Group, memberId: string): void {
  group.members.delete(memberId);
  for (const offset of group.offsets) if (offset.owner === memberId) offset.owner = null;
}
