import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseKeySet } from '@millrace/domain';
import {
  createFolderObjectStore,
  createFolderStoreServer,
  type FolderObjectStore,
} from '@millrace/objects/folder';
import { type Logger, startServices, systemClock } from '@millrace/platform';
import { type EmbeddedConfig } from '../config.ts';
import { writeJsonFile } from '../data-folder/json-file.ts';
import { choosePorts } from '../data-folder/ports.ts';
import { removeRunFile, writeRunFile } from '../data-folder/run-file.ts';
import { loadSecrets, type Secrets } from '../data-folder/secrets.ts';
import { type Development } from '../dev/development.ts';
import { startPostgres } from '../postgres/index.ts';
import { openRecord } from './record.ts';
import { createServiceSet } from './service-set.ts';
import { startOrUndo, type Undo } from './undo.ts';

export interface EmbeddedOptions {
  dataDir: string;
  /** Written when all of it is ready, removed at the stop. */
  readyFile?: string;
  dev: boolean;
  config: EmbeddedConfig;
  env: NodeJS.ProcessEnv;
  logger: Logger;
  signal: AbortSignal;
}

/** What the ready file holds. */
interface ReadyFile {
  api: string;
  cdn: string;
  admin: string;
  ops: { [service: string]: string };
  dns: string | null;
  adminToken: string | null;
}

export interface Embedded {
  ready: ReadyFile;
  /** Where the development console is; null without `--dev`. */
  consoleUrl: string | null;
  /** Resolves when the database ended by itself: nothing works without it. */
  databaseGone: Promise<void>;
  stop(): Promise<void>;
}

/** Starts everything in one process and resolves when it is ready; undoes what was started when it cannot. */
export const startEmbedded = (options: EmbeddedOptions): Promise<Embedded> =>
  startOrUndo(options.logger, (undo) => start(options, undo));

async function start(options: EmbeddedOptions, undo: Undo): Promise<Embedded> {
  const { dataDir, config, logger, signal } = options;
  const postgres = await startPostgres({ dataDir, logger });
  undo.add(() => postgres.stop());
  signal.throwIfAborted();

  const record = await openRecord(postgres.connectionString, logger);
  undo.add(() => record.close());
  // The lock on the data folder says that nobody else runs: what an earlier run still leases is free.
  await record.bus.evictOtherBoots();

  const secrets = loadSecrets(dataDir);
  const host = config.MILLRACE_HOST;
  const ports = await choosePorts(
    dataDir,
    host,
    {
      api: config.API_PORT,
      internal: config.API_INTERNAL_PORT,
      cdn: config.CDN_PORT,
      upload: config.UPLOAD_PORT,
    },
    logger,
  );
  const urlOf = (port: number): string => `http://${host}:${port}`;
  const urls = {
    api: config.API_URL ?? urlOf(ports.api),
    cdn: config.CDN_URL ?? urlOf(ports.cdn),
    docs: config.DOCS_URL ?? urlOf(ports.api),
    upload: config.UPLOAD_URL ?? urlOf(ports.upload),
  };
  const objects = await openObjects(options, { secrets, port: ports.upload, url: urls.upload }, undo);
  const development = options.dev ? await develop(options, urls) : undefined;
  undo.add(() => development?.close());

  const set = createServiceSet({
    ...{ config, env: options.env, dataDir, secrets, ports, urls, record, objects },
    connectionString: postgres.connectionString,
    development,
  });
  undo.add(() => set.closeOps());
  const ops = await set.listenOps();
  const started = await startServices(set.services, { signal, logger });
  undo.add(() => started.stop());

  const ready: ReadyFile = {
    api: urls.api,
    cdn: urls.cdn,
    admin: urlOf(ports.internal),
    ops,
    dns: development?.dns ?? null,
    adminToken: options.dev ? secrets.adminToken : null,
  };
  announce(options, { ready, connectionString: postgres.connectionString }, undo);
  return {
    ready,
    consoleUrl: development?.consoleUrl ?? null,
    databaseGone: postgres.exited,
    stop: () => undo.run(),
  };
}

/** Loaded here alone: a start without `--dev` has none of it. */
async function develop(
  { dataDir, config, env, logger }: EmbeddedOptions,
  urls: { api: string; cdn: string; upload: string },
): Promise<Development> {
  const { startDevelopment } = await import('../dev/development.ts');
  return startDevelopment({ dataDir, host: config.MILLRACE_HOST, urls, env, logger });
}

async function openObjects(
  { dataDir, config, logger }: EmbeddedOptions,
  { secrets, port, url }: { secrets: Secrets; port: number; url: string },
  undo: Undo,
): Promise<FolderObjectStore> {
  // Videos are nobody else's to read, whatever the mode of the folders above.
  mkdirSync(join(dataDir, 'objects'), { recursive: true, mode: 0o700 });
  const objects = await createFolderObjectStore({
    root: join(dataDir, 'objects'),
    publicUrl: url,
    keys: parseKeySet(secrets.uploadUrlKeys),
    clock: systemClock,
    logger,
  });
  undo.add(() => objects.close());
  const server = createFolderStoreServer({ store: objects, host: config.MILLRACE_HOST, port, logger });
  await startServices([server], { signal: new AbortController().signal, logger });
  undo.add(() => server.stop());
  return objects;
}

function announce(
  { dataDir, readyFile }: EmbeddedOptions,
  { ready, connectionString }: { ready: ReadyFile; connectionString: string },
  undo: Undo,
): void {
  writeRunFile(dataDir, { connectionString });
  undo.add(() => removeRunFile(dataDir));
  if (readyFile === undefined) return;
  writeJsonFile(readyFile, ready);
  undo.add(() => rmSync(readyFile, { force: true }));
}
