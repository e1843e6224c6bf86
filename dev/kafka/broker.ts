import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePorts } from '../free-ports.ts';
import { serverFolder, serverProcess, untilSaid } from '../server-process.ts';
import { kafkaJars } from './jars.ts';
import { brokerProperties, type SecureListener } from './properties.ts';

export interface KafkaBrokerOptions {
  /** Where its data is; a temporary folder, removed by `stop`, unless told. */
  dataDir?: string;
  /** A free one unless told. */
  port?: number;
  /** Adds a listener with TLS and SASL beside the plain one. */
  secure?: SecureListener;
  /** A process group of its own: a terminal's Ctrl-C is not for it. */
  detached?: boolean;
  /** Lines of `server.properties` instead of, or beside, the usual ones. */
  properties?: Readonly<Record<string, string>>;
}

export interface KafkaBroker {
  /** `127.0.0.1:PORT`; it stays the same over a kill. */
  readonly address: string;
  /** The same of the listener with TLS and SASL, when there is one. */
  readonly secureAddress: string | undefined;
  /** Undefined while it is not running. */
  readonly pid: number | undefined;
  /** Ends it as a power cut would. */
  kill(): Promise<void>;
  /** Starts it again after `kill` or `shutDown`, on the same ports and data. */
  start(): Promise<void>;
  /** Ends it in order, as for maintenance. */
  shutDown(): Promise<void>;
  /** Freezes it: it holds its connections and answers nothing. */
  freeze(): void;
  thaw(): void;
  /** Ends it, and removes its folder when that was temporary. */
  stop(): Promise<void>;
}

const host = '127.0.0.1';
const startMs = 60_000;
/** Small, and quick to start rather than quick to run. */
const jvm = ['-Xms256m', '-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Dlog4j2.level=INFO'];
/** The port opens earlier, but refuses what comes. */
const readyWords = 'Kafka Server started';

/**
 * Starts a real Apache Kafka broker (KRaft, one node) on loopback and resolves when it takes requests. The first
 * start on a machine fetches it.
 */
export async function startKafkaBroker(options: KafkaBrokerOptions = {}): Promise<KafkaBroker> {
  const jars = await kafkaJars();
  const { dataDir, isTemporary, remove } = await serverFolder(options.dataDir, 'millrace-kafka-');
  const [free = 0, controller = 0, secure = 0] = await freePorts(3, host);
  const client = options.port ?? free;
  const properties = join(dataDir, 'server.properties');
  await mkdir(dataDir, { recursive: true });
  const ports = { client, controller, secure };
  await writeFile(properties, brokerProperties({ ...options, host, ports, logs: join(dataDir, 'logs') }));
  format(jars, properties);

  const broker = serverProcess({
    command: ['java', ...jvm, '-cp', join(jars, '*'), 'kafka.Kafka', properties],
    detached: options.detached ?? false,
    untilReady: (child) => untilSaid(child, { name: 'Kafka', words: readyWords, withinMs: startMs }),
  });
  const stop = async (): Promise<void> => {
    await broker.end(isTemporary ? 'SIGKILL' : 'SIGTERM');
    await remove();
  };
  try {
    await broker.start();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    address: `${host}:${client}`,
    secureAddress: options.secure && `${host}:${secure}`,
    get pid() {
      return broker.pid;
    },
    kill: () => broker.end('SIGKILL'),
    start: () => broker.start(),
    shutDown: () => broker.end('SIGTERM'),
    freeze: () => broker.signal('SIGSTOP'),
    thaw: () => broker.signal('SIGCONT'),
    stop,
  };
}

/** Gives new data their cluster id; data that are there keep theirs. */
function format(jars: string, properties: string): void {
  const id = randomBytes(16);
  // An id may not begin with a dash: the tool would take it for an option.
  id.writeUInt8(id.readUInt8() & 0x7f);
  const clusterId = id.toString('base64url');
  const tool = ['kafka.tools.StorageTool', 'format', '--ignore-formatted', '-t', clusterId, '-c', properties];
  const { status, stderr } = spawnSync('java', ['-cp', join(jars, '*'), ...tool], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`the broker's storage could not be formatted: ${stderr}`);
}
