import { setTimeout as pause } from 'node:timers/promises';
import { type Bus, type BusMessage, type Delivery, type OutgoingMessage } from '../bus.ts';

/** What an adapter brings to the conformance suite. */
export interface ConformanceWorld {
  /** Creates a topic that nobody else uses and its dead twin, and returns its name. */
  createTopic(partitions: number): Promise<string>;
  /** A bus as a process of its own would have it. `kill` cuts it off without a goodbye: a crash, to the others. */
  member(): Promise<{ bus: Bus; kill(): Promise<void> }>;
  teardown(): Promise<void>;
}

/** A bound that a loaded machine and a group's rebalance stay far below. */
const patienceMs = 45_000;

/** Asks until the answer is true; for states that nothing announces. */
export async function eventually(what: string, check: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!(await check())) {
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await pause(20);
  }
}

/** A promise with its ends in reach. */
export interface Gate {
  opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  return { opened: promise, open: () => resolve(undefined) };
}

type React = (message: BusMessage, delivery: Delivery, attempt: number) => Promise<void> | void;

/** A handler that remembers every delivery, in order, and then does what the test wants. */
export class Recorder {
  readonly messages: BusMessage[] = [];
  readonly #react: React;
  readonly #watchers = new Set<() => void>();

  constructor(react: React = () => undefined) {
    this.#react = react;
  }

  /** The parsed bodies, in the order of delivery. */
  get values(): unknown[] {
    return this.messages.map((message): unknown => JSON.parse(message.value));
  }

  readonly handle = async (message: BusMessage, delivery: Delivery): Promise<void> => {
    this.messages.push(message);
    for (const check of this.#watchers) check();
    const attempt = this.messages.filter((other) => other.value === message.value).length;
    await this.#react(message, delivery, attempt);
  };

  /** Resolves when so many deliveries have begun. */
  async count(deliveries: number): Promise<void> {
    await this.until(`${deliveries} deliveries`, () => this.messages.length >= deliveries);
  }

  /** Resolves when each of these bodies was delivered. */
  async delivered(values: readonly unknown[]): Promise<void> {
    await this.until(`all of ${values.length} bodies`, () => {
      const seen = new Set(this.messages.map((message) => message.value));
      return values.every((value) => seen.has(JSON.stringify(value)));
    });
  }

  async until(what: string, reached: () => boolean): Promise<void> {
    if (reached()) return;
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const check = (): void => {
      if (reached()) resolve(undefined);
    };
    const timer = setTimeout(
      () => reject(new Error(`waited in vain for ${what}; ${this.messages.length} deliveries so far`)),
      patienceMs,
    );
    this.#watchers.add(check);
    await promise.finally(() => {
      clearTimeout(timer);
      this.#watchers.delete(check);
    });
  }
}

/** What the tests of one suite work with; everything they open is closed after each of them. */
export interface Bench {
  topic(partitions: number): Promise<string>;
  group(): string;
  bus(): Promise<Bus>;
  mortal(): Promise<{ bus: Bus; kill(): Promise<void> }>;
}

export class WorldBench implements Bench {
  readonly #makeWorld: () => Promise<ConformanceWorld>;
  #world: ConformanceWorld | undefined;
  #open: Bus[] = [];
  #groups = 0;

  constructor(makeWorld: () => Promise<ConformanceWorld>) {
    this.#makeWorld = makeWorld;
  }

  async start(): Promise<void> {
    this.#world = await this.#makeWorld();
  }

  async closeBuses(): Promise<void> {
    await Promise.all(this.#open.splice(0).map((bus) => bus.close()));
  }

  async stop(): Promise<void> {
    await this.#world?.teardown();
  }

  topic(partitions: number): Promise<string> {
    return this.#started.createTopic(partitions);
  }

  group(): string {
    this.#groups += 1;
    return `conformance-${this.#groups}`;
  }

  async bus(): Promise<Bus> {
    return (await this.mortal()).bus;
  }

  async mortal(): Promise<{ bus: Bus; kill(): Promise<void> }> {
    const member = await this.#started.member();
    this.#open.push(member.bus);
    return member;
  }

  get #started(): ConformanceWorld {
    if (!this.#world) throw new Error('the suite has not started');
    return this.#world;
  }
}

/** Messages whose bodies are the numbers `from` … `to - 1`, all of one key unless told. */
export const numbered = (
  topic: string,
  from: number,
  to: number,
  extra: Partial<OutgoingMessage> = {},
): OutgoingMessage[] =>
  Array.from({ length: to - from }, (_, i) => ({ topic, key: 'k', value: from + i, ...extra }));

export const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, i) => from + i);

/** The whole lag of a group. */
export async function totalLag(bus: Bus, group: string, topic: string): Promise<number> {
  return [...(await bus.lag(group, topic)).values()].reduce((sum, messages) => sum + messages, 0);
}
