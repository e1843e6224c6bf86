import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  choosePorts,
  distributedBackend,
  loadSecrets,
  removeRunFile,
  serviceSettings,
  startDevelopment,
  startOrUndo,
  type Undo,
  writeJsonFile,
  writeRunFile,
} from '@millrace/embedded/stack-parts';
import { type Logger } from '@millrace/platform';
import { type StackServers, startServers } from './servers.ts';
import { ServiceProcess } from './service-process.ts';
import { stackSettings } from './settings.ts';

export interface StackOptions {
  dataDir: string;
  /** Written when all of it is ready and whenever a process is another one, removed at the stop. */
  readyFile?: string;
  /** How many encoders; 1 unless told. */
  encoders?: number;
  /** How many processes of the CDN, each with an address of its own; 1 unless told. */
  cdns?: number;
  /** Settings of the services that the stack does not decide. */
  env: NodeJS.ProcessEnv;
  logger: Logger;
  say: (line: string) => void;
  signal: AbortSignal;
}

/** What the ready file holds: what the embedded service's does, and which process is which. */
interface StackReady {
  api: string;
  /** The CDN of playback addresses; `cdns` has it and the others. */
  cdn: string;
  cdns: string[];
  admin: string;
  ops: { [process: string]: string };
  dns: string;
  adminToken: string;
  kafka: string;
  s3: string;
  /** Of those that run now. */
  pids: { [process: string]: number };
}

export interface RunningStack {
  /** As it is now. */
  ready(): StackReady;
  /** By name: `api`, `encoder-1`, … They are started again when they end by themselves. */
  services: ReadonlyMap<string, ServiceProcess>;
  servers: StackServers;
  stop(): Promise<void>;
}

const host = '127.0.0.1';

/**
 * Runs Millrace as on a cluster, on this machine: PostgreSQL, Kafka, an S3 server and each service as processes of their
 * own, and what `--dev` adds to the embedded service. Resolves when all of it is ready; undoes what was started when it
 * cannot.
 */
export const startStack = (options: StackOptions): Promise<RunningStack> =>
  startOrUndo(options.logger, (undo) => start(options, undo));

async function start(options: StackOptions, undo: Undo): Promise<RunningStack> {
  const { dataDir, env, logger, say, signal } = options;
  // As the embedded service's: the system user of PostgreSQL passes to its own part.
  mkdirSync(dataDir, { recursive: true, mode: 0o711 });
  const names = processNames(options);
  const cdns = namesOf('cdn', names);
  const ports = await choosePorts(dataDir, host, portsOf(names, cdns), logger);
  const portOf = (name: string): number => ports[name] ?? 0;
  const urlOf = (name: string): string => `http://${host}:${portOf(name)}`;

  say('starting PostgreSQL, Kafka and an S3 server');
  const servers = await startServers({
    ...{ dataDir, logger },
    ports: { kafka: portOf('kafka'), s3: portOf('s3'), postgres: portOf('postgres') },
  });
  for (const server of [servers.postgres, servers.s3, servers.kafka]) undo.add(() => server.stop());
  signal.throwIfAborted();

  const secrets = loadSecrets(dataDir);
  const urls = { api: urlOf('api'), cdn: urlOf('cdn'), docs: urlOf('api'), upload: servers.s3.endpoint };
  const development = await startDevelopment({ dataDir, host, urls, env, logger });
  undo.add(() => development.close());
  const settings = stackSettings({
    ...{ host, dataDir, servers, env, internalPort: portOf('internal') },
    common: {
      ...serviceSettings({
        ...{ host, urls, secrets },
        ports: { api: portOf('api'), internal: portOf('internal'), cdn: portOf('cdn') },
      }),
      ...development.settings,
    },
  });
  await prepare(settings.commandLine, options);
  signal.throwIfAborted();

  mkdirSync(join(dataDir, 'logs'), { recursive: true, mode: 0o700 });
  let announceAgain = (): void => undefined;
  const services = [...names].map(
    ([name, service]) =>
      new ServiceProcess({
        ...{ name, service, say, onRestart: () => announceAgain() },
        env: settings.of({ name, service, port: portOf(name), opsPort: portOf(`ops-${name}`) }),
        ops: urlOf(`ops-${name}`),
        logPath: join(dataDir, 'logs', `${name}.log`),
      }),
  );
  say(`starting ${[...names.keys()].join(', ')}`);
  undo.add(() => Promise.all(services.map((service) => service.stop())));
  await Promise.all(services.map((service) => service.start(signal)));

  const ready = (): StackReady => ({
    ...{ api: urls.api, cdn: urls.cdn, cdns: cdns.map(urlOf), admin: urlOf('internal') },
    ops: Object.fromEntries(services.map(({ name, ops }) => [name, ops])),
    ...{ dns: development.dns, adminToken: secrets.adminToken },
    ...{ kafka: servers.kafka.address, s3: servers.s3.endpoint },
    pids: Object.fromEntries(
      [servers.postgres, servers.kafka, servers.s3, ...services].flatMap(({ name, pid }) =>
        pid === undefined ? [] : [[name, pid]],
      ),
    ),
  });
  announceAgain = announce(options, { ready, commandLine: settings.commandLine, servers }, undo);
  return {
    ...{ ready, servers },
    services: new Map(services.map((service) => [service.name, service])),
    stop: () => undo.run(),
  };
}

/** Names of the processes, and which service each is. */
function processNames({ encoders = 1, cdns = 1 }: StackOptions): ReadonlyMap<string, string> {
  const one = ['reconciler', 'api', 'cdn', 'webhooks'].map((name): [string, string] => [name, name]);
  const more = Array.from({ length: cdns - 1 }, (_, i): [string, string] => [`cdn-${i + 2}`, 'cdn']);
  const many = Array.from({ length: encoders }, (_, i): [string, string] => [`encoder-${i + 1}`, 'encoder']);
  return new Map([...one, ...more, ...many]);
}

const namesOf = (service: string, names: ReadonlyMap<string, string>): string[] =>
  [...names].filter(([, each]) => each === service).map(([name]) => name);

/** Any free ones, which stay the same over restarts: addresses that are out keep working. */
const portsOf = (names: ReadonlyMap<string, string>, cdns: readonly string[]): Record<string, number> =>
  Object.fromEntries(
    [
      ...['postgres', 'kafka', 's3', 'api', 'internal', ...cdns],
      ...[...names.keys()].map((name) => `ops-${name}`),
    ].map((name) => [name, 0]),
  );

/** What the commands `migrate`, `topics` and `bucket` do: each is safe to do again. */
async function prepare(settings: Record<string, string>, { logger, say }: StackOptions): Promise<void> {
  say('preparing schema, topics and bucket');
  const backend = distributedBackend(settings, logger);
  try {
    await Promise.all([backend.migrate(), backend.ensureTopics(), backend.prepareBucket()]);
  } finally {
    await backend.close();
  }
}

/** @returns writes the ready file anew */
function announce(
  { dataDir, readyFile }: StackOptions,
  stack: { ready: () => StackReady; commandLine: Record<string, string>; servers: StackServers },
  undo: Undo,
): () => void {
  const { connectionString } = stack.servers.postgres;
  writeRunFile(dataDir, { connectionString, settings: stack.commandLine });
  undo.add(() => removeRunFile(dataDir));
  if (readyFile === undefined) return () => undefined;
  let isOver = false;
  const write = (): void => {
    if (!isOver) writeJsonFile(readyFile, stack.ready());
  };
  write();
  undo.add(() => {
    isOver = true;
    rmSync(readyFile, { force: true });
  });
  return write;
}
