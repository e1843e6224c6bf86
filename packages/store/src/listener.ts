import { type Clock, type Logger } from '@millrace/platform';
import { Client } from 'pg';

export interface Listener {
  close(): Promise<void>;
}

/** How long to wait before connecting again, in milliseconds. */
const reconnectMs = 1_000;

/**
 * Calls `onNotify` whenever the channel is notified, and after each (re)connection, since notifications are
 * lost while the connection is down. Needs a direct connection: a pooler breaks LISTEN. Callers sweep as well;
 * a notification only makes them quick.
 */
export function listen(
  { connectionString, clock, logger }: { connectionString: string; clock: Clock; logger: Logger },
  channel: string,
  onNotify: () => void,
): Listener {
  const closing = new AbortController();
  const loop = (async () => {
    while (!closing.signal.aborted) {
      await listenOnce(connectionString, channel, onNotify, closing.signal).catch((error: unknown) => {
        logger.warn({ err: error, channel }, 'listening connection lost');
      });
      await clock.sleep(reconnectMs, closing.signal).catch(() => undefined);
    }
  })();
  return {
    close: async () => {
      closing.abort();
      await loop;
    },
  };
}

/** Connects and listens until the connection ends or `signal` aborts. */
async function listenOnce(
  connectionString: string,
  channel: string,
  onNotify: () => void,
  signal: AbortSignal,
): Promise<void> {
  const client = new Client({
    connectionString,
    keepAlive: true,
    keepAliveInitialDelayMillis: 15_000,
    connectionTimeoutMillis: 5_000,
  });
  const ended = new Promise<void>((resolve, reject) => {
    client.once('end', resolve);
    client.once('error', reject);
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  ended.catch(() => undefined);
  client.on('notification', onNotify);
  try {
    await client.connect();
    await client.query(`listen ${client.escapeIdentifier(channel)}`);
    onNotify();
    await ended;
  } finally {
    await client.end().catch(() => undefined);
  }
}
