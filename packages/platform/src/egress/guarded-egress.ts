import { createKeep } from '../keep.ts';
import { type EgressAnswer, type EgressConnector, EgressError, type EgressRequest } from './egress.ts';
import { GuardedConnection } from './guarded-connection.ts';
import { type ConnectRules } from './guarded-connect.ts';
import { IdleConnections } from './idle-connections.ts';
import { readTarget, type Target } from './target.ts';

export interface EgressOptions extends ConnectRules {
  /** Connections kept for their next exchange, of all hosts together; 256 unless told. */
  maxIdle?: number;
  /** How long one is kept, in milliseconds; 4 s unless told. */
  idleMs?: number;
}

const defaultMaxIdle = 256;
/** Under the 5 s after which many servers close. */
const defaultIdleMs = 4_000;

/** URLs that were read before; what is behind their names is looked up anew for every connection. */
const maxTargets = 10_000;

/**
 * The guarded way out. The URL is checked on every send; addresses are looked up and checked for every new
 * connection, and a kept one goes on leading to the address it was made to.
 */
export function createEgress(options: EgressOptions = {}): EgressConnector {
  const rules = { ...options, idleMs: options.idleMs ?? defaultIdleMs };
  const idle = new IdleConnections(options.maxIdle ?? defaultMaxIdle);
  const busy = new Set<GuardedConnection>();
  const keepTarget = createKeep<Target>(maxTargets);
  let closed = false;

  const open = (target: Target): GuardedConnection => {
    const connection = new GuardedConnection(target, rules);
    connection.onceClosed(() => void idle.discard(connection));
    return connection;
  };

  const exchange = async (
    connection: GuardedConnection,
    request: EgressRequest,
    target: Target,
  ): Promise<EgressAnswer> => {
    busy.add(connection);
    try {
      const answer = await connection.exchange(request, target.path);
      busy.delete(connection);
      if (answer.truncated) await connection.end();
      else idle.give(connection);
      return answer;
    } catch (error) {
      busy.delete(connection);
      await connection.end();
      throw error;
    }
  };

  return {
    send: async (request) => {
      const { url } = request;
      const target = keepTarget(url, () => readTarget(url, { plainHttp: rules.loopback === true }));
      const limit = startLimit(request);
      try {
        const kept = idle.take(target.origin);
        if (kept !== undefined) {
          try {
            return await exchange(limit.over(kept), request, target);
          } catch (error) {
            if (request.repeatable !== true || !wasLost(error)) throw error;
          }
        }
        if (closed) throw new EgressError('aborted', 'the sender is closed');
        return await exchange(limit.over(open(target)), request, target);
      } finally {
        limit.clear();
      }
    },
    close: async () => {
      closed = true;
      const reason = new EgressError('aborted', 'the sender is closed');
      await Promise.all([idle.close(), ...[...busy].map((connection) => connection.end(reason))]);
    },
  };
}

/** Nothing of an answer came: the usual end of a kept connection that the other side has closed meanwhile. */
const wasLost = (error: unknown): boolean =>
  error instanceof EgressError && error.code === 'connection_lost' && error.status === null;

/** Ends the connection it is over when the time of the request is up, or its caller wants no more. */
function startLimit({ timeoutMs, signal }: EgressRequest): {
  /** @throws EgressError when the limit is reached already */
  over(connection: GuardedConnection): GuardedConnection;
  clear(): void;
} {
  let current: GuardedConnection | undefined;
  let reached: EgressError | undefined;
  const end = (reason: EgressError): void => {
    reached = reason;
    void current?.end(reason);
  };
  const onAbort = (): void => end(new EgressError('aborted', 'the exchange was called off'));
  const timer = setTimeout(
    () => end(new EgressError('timeout', `no whole answer within ${timeoutMs / 1_000} s`)),
    timeoutMs,
  );
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted === true) onAbort();
  return {
    over: (connection) => {
      current = connection;
      if (reached === undefined) return connection;
      void connection.end();
      throw reached;
    },
    clear: () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    },
  };
}
