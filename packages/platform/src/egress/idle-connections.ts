import { type GuardedConnection } from './guarded-connection.ts';

/** Connections that wait for their next exchange: a bounded number in all, the one that waited longest goes first. */
export class IdleConnections {
  readonly #limit: number;
  /** In the order in which they became idle. */
  readonly #all = new Set<GuardedConnection>();
  readonly #byOrigin = new Map<string, GuardedConnection[]>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The one of this origin that was used last: the others are let grow old. */
  take(origin: string): GuardedConnection | undefined {
    const connection = this.#byOrigin.get(origin)?.at(-1);
    if (connection !== undefined) this.#remove(connection);
    return connection;
  }

  give(connection: GuardedConnection): void {
    const others = this.#byOrigin.get(connection.origin);
    if (others === undefined) this.#byOrigin.set(connection.origin, [connection]);
    else others.push(connection);
    this.#all.add(connection);
    const [oldest] = this.#all;
    if (this.#all.size > this.#limit && oldest !== undefined) void this.discard(oldest);
  }

  /** Ends a connection if it waits here. */
  async discard(connection: GuardedConnection): Promise<void> {
    if (this.#remove(connection)) await connection.end();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((connection) => this.discard(connection)));
  }

  #remove(connection: GuardedConnection): boolean {
    const others = this.#byOrigin.get(connection.origin);
    const at = others?.indexOf(connection) ?? -1;
    if (others === undefined || at < 0) return false;
    others.splice(at, 1);
    if (others.length === 0) this.#byOrigin.delete(connection.origin);
    return this.#all.delete(connection);
  }
}
