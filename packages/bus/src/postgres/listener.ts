import { randomUUID } from 'node:crypto';
import { type Clock, type Logger } from '@millrace/platform';
import { Client } from 'pg';
import { type LogEvent } from '../log/log-store.ts';
import { sleepUnlessAborted } from '../delivery/wakeup.ts';
import { connectionConfig, endWithin, type Runner } from './connections.ts';
import { notify } from './statements.ts';

const channel = 'millrace_bus';
/** How often a silent connection is asked whether it is still there, in milliseconds. */
const pingMs = 15_000;
const pingTimeoutMs = 5_000;
const reconnectMs = { first: 200, longest: 5_000 };

export interface EventChannelOptions {
  connectionString: string;
  relaxed: Runner;
  clock: Clock;
  logger: Logger;
}

/**
 * Carries events between processes: NOTIFY after the commit, LISTEN on a direct connection (a pooler in
 * transaction mode would lose it). Events of this process reach its own listeners without a round trip. A lost
 * event costs at most one sweep; whenever listening begins, everybody looks.
 */
export class EventChannel {
  readonly #options: EventChannelOptions;
  readonly #self = randomUUID();
  readonly #listeners = new Set<(event: LogEvent) => void>();
  readonly #outgoing = new Set<string>();
  readonly #ended = new AbortController();
  #sending: Promise<void> | undefined;
  #receiving: Promise<void> | undefined;

  constructor(options: EventChannelOptions) {
    this.#options = options;
  }

  /** Calls back on every event of any process. The connection is opened for the first listener. */
  listen(listener: (event: LogEvent) => void): () => void {
    this.#listeners.add(listener);
    this.#receiving ??= this.#keepReceiving();
    return () => this.#listeners.delete(listener);
  }

  emit(event: LogEvent): void {
    this.#tell(event);
    this.#outgoing.add(JSON.stringify({ ...event, from: this.#self }));
    this.#sending ??= this.#send();
  }

  async close(): Promise<void> {
    await this.#sending;
    this.#ended.abort();
    await this.#receiving;
  }

  #tell(event: LogEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  /**
   * One NOTIFY in flight, with everything that came up since the last. In the publishing transaction it would
   * hold PostgreSQL's one lock on the notification queue during the write to the disk, and so queue up every
   * other transaction that notifies.
   */
  async #send(): Promise<void> {
    while (this.#outgoing.size > 0) {
      const payloads = [...this.#outgoing];
      this.#outgoing.clear();
      // Lost: the others look at the next sweep.
      await this.#options.relaxed.run(notify, [channel, payloads]).catch(() => undefined);
    }
    this.#sending = undefined;
  }

  async #keepReceiving(): Promise<void> {
    let wait = reconnectMs.first;
    while (!this.#ended.signal.aborted) {
      const client = new Client({
        ...connectionConfig(this.#options.connectionString),
        query_timeout: pingTimeoutMs,
      });
      try {
        await this.#receive(client);
        wait = reconnectMs.first;
      } catch (error) {
        this.#options.logger.warn({ err: error }, 'the bus lost its listening connection');
      }
      await endWithin(client);
      await sleepUnlessAborted(this.#options.clock, wait, this.#ended.signal);
      wait = Math.min(wait * 2, reconnectMs.longest);
    }
  }

  /** Receives until the channel closes; rejects when the connection is lost. */
  async #receive(client: Client): Promise<void> {
    const { signal } = this.#ended;
    const lost = new Promise<never>((_resolve, reject) => {
      client.on('error', reject);
      client.on('end', () => reject(new Error('the connection ended')));
    });
    // It is raced below; when nobody races, its rejection is no news.
    lost.catch(() => undefined);
    client.on('notification', ({ payload }) => this.#hear(payload ?? ''));
    await client.connect();
    await client.query(`listen ${channel}`);
    // What was notified before is missed.
    this.#tell({});
    for (;;) {
      await Promise.race([lost, sleepUnlessAborted(this.#options.clock, pingMs, signal)]);
      if (signal.aborted) return;
      await client.query('select 1');
    }
  }

  #hear(payload: string): void {
    const event = parseEvent(payload);
    if (event && event.from !== this.#self) this.#tell(event);
  }
}

/** Anybody with access to the database can notify: what is not an event is ignored. */
function parseEvent(payload: string): (LogEvent & { from: unknown }) | undefined {
  try {
    const { topic, group, from } = JSON.parse(payload) as Record<string, unknown>;
    if (typeof topic !== 'string') return undefined;
    return { topic, from, ...(typeof group === 'string' ? { group } : {}) };
  } catch {
    return undefined;
  }
}
