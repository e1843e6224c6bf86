import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Logger } from '@millrace/platform';
import kafkajs, { type Kafka, type KafkaConfig, stopIdleTimers } from './kafkajs.ts';
import { type KafkaTimes } from './times.ts';

/** How to reach the brokers. */
export interface KafkaConnection {
  /** `host:port` of some brokers; the others are learnt from them. */
  brokers: readonly string[];
  /** What the brokers' logs and quotas call this process. */
  clientId: string;
  /** PEM texts; without `ca` the system's authorities are trusted. */
  tls?: { ca?: string; cert?: string; key?: string };
  sasl?: { mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'; username: string; password: string };
  /** Opens the sockets instead of `node:net`: tests put a line between that they can cut. */
  openSocket?: (host: string, port: number, onConnect: () => void) => Socket;
}

/**
 * A kafkajs instance whose sockets are in our hands. kafkajs waits for answers on a connection long after a broker
 * fell silent, and its retries would reconnect whatever was given up: a severed client can send nothing any more.
 */
export interface KafkaClient {
  kafka: Kafka;
  /** Breaks all connections, now and for ever. */
  sever(): void;
}

/** A quiet broker is noticed by requests that time out; this only keeps middle boxes from forgetting us. */
const keepAliveMs = 15_000;
/** Within one call to the cluster: enough to try every seed; whoever calls tries again with a fresh client. */
const clusterRetry = { retries: 3, initialRetryTime: 100, maxRetryTime: 1_000 };

export function createKafkaClient(
  connection: KafkaConnection,
  { logger, times }: { logger: Logger; times: KafkaTimes },
): KafkaClient {
  stopIdleTimers();
  const sockets = new Set<Socket>();
  let severed = false;
  const open = connection.openSocket ?? openerOf(connection);
  const kafka = new kafkajs.Kafka({
    brokers: [...connection.brokers],
    clientId: connection.clientId,
    // TLS is the socket factory's business; kafkajs wants to know of it for the words in its logs only.
    ssl: connection.tls !== undefined,
    ...(connection.sasl === undefined ? {} : { sasl: saslOptions(connection.sasl) }),
    connectionTimeout: times.connectMs,
    authenticationTimeout: times.connectMs,
    requestTimeout: times.requestMs,
    retry: clusterRetry,
    // What matters is logged by the adapter; kafkajs logs each try of an outage as an error, with its stack.
    logLevel: kafkajs.logLevel.WARN,
    logCreator:
      () =>
      ({ namespace, log }) =>
        logger.debug({ namespace, ...detailsOf(log) }, log.message),
    socketFactory: ({ host, port, onConnect }) => {
      if (severed) throw new Error('this client was given up');
      const socket = open(host, port, onConnect);
      socket.setKeepAlive(true, keepAliveMs).setNoDelay(true);
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
      return socket;
    },
  });
  return {
    kafka,
    sever: () => {
      severed = true;
      // With an error, since kafkajs listens for nothing else that would settle what waits on this connection.
      for (const socket of sockets) socket.destroy(new Error('the connection was given up'));
    },
  };
}

const openerOf =
  ({ tls }: KafkaConnection) =>
  (host: string, port: number, onConnect: () => void): Socket => {
    if (tls === undefined) return connect({ host, port }, onConnect);
    const servername = isIP(host) === 0 ? { servername: host } : {};
    return connectTls({ host, port, ...servername, ...tls }, onConnect);
  };

function saslOptions({
  mechanism,
  username,
  password,
}: NonNullable<KafkaConnection['sasl']>): NonNullable<KafkaConfig['sasl']> {
  switch (mechanism) {
    case 'plain':
      return { mechanism, username, password };
    case 'scram-sha-256':
      return { mechanism, username, password };
    case 'scram-sha-512':
      return { mechanism, username, password };
  }
}

const detailsOf = ({ broker, error }: Record<string, unknown>): Record<string, unknown> => ({
  broker,
  error,
});
