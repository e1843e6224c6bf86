import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Logger, silentLogger } from '@millrace/platform';
import { waitFor } from '@millrace/testing';
import { Client } from 'pg';
import { identifyProcess } from '../data-folder/process-identity.ts';
import { type EmbeddedPostgres, startPostgres } from '../postgres/index.ts';

const holderEntry = new URL('hold-postgres.ts', import.meta.url).pathname;

/** A PostgreSQL in a process of its own. */
interface Holder {
  connectionString: string;
  /** Of the server. */
  pid: number;
  kill(): Promise<void>;
}

/** Why the PostgreSQL of another process did not start. */
class HolderError extends Error {
  override readonly name = 'HolderError';
  readonly code: string | undefined;
  constructor(answer: { code?: string; message?: string }) {
    super(answer.message ?? 'it said nothing');
    this.code = answer.code;
  }
}

export interface DatabaseFolder {
  /** Holds `data` and whatever else a test needs; of mode 0700, as temporary folders are. */
  path: string;
  dataDir: string;
  /** Starts PostgreSQL in this process. */
  start(logger?: Logger): Promise<EmbeddedPostgres>;
  /** Starts it in another, below `wrapper` (a command line that runs the rest of its arguments). */
  hold(wrapper?: readonly string[], installation?: string): Promise<Holder>;
  remove(): Promise<void>;
}

/** A new folder whose `data` is a copy of the template's, since making a database takes seconds; or empty. */
export async function createDatabaseFolder(template?: DatabaseFolder): Promise<DatabaseFolder> {
  const path = await mkdtemp(join(tmpdir(), 'millrace-postgres-'));
  const dataDir = join(path, 'data');
  // `cp -a` keeps the owner, which fs.cp does not.
  if (template) execFileSync('cp', ['-a', template.dataDir, dataDir]);
  const servers: EmbeddedPostgres[] = [];
  const holders: Holder[] = [];
  return {
    path,
    dataDir,
    start: async (logger = silentLogger) => {
      const server = await startPostgres({ dataDir, logger });
      servers.push(server);
      return server;
    },
    hold: async (wrapper = [], installation) => {
      const line = [...wrapper, process.execPath, holderEntry, dataDir];
      if (installation !== undefined) line.push(installation);
      const holder = await startHolder(line);
      holders.push(holder);
      return holder;
    },
    remove: async () => {
      await Promise.all(holders.map((holder) => holder.kill()));
      // Their servers end with them, but a moment later.
      const serversLeft = (): boolean => holders.some(({ pid }) => identifyProcess(pid) !== undefined);
      await waitFor(() => !serversLeft(), { what: 'the servers of killed processes to end' });
      await Promise.all(servers.map((server) => server.stop()));
      await rm(path, { recursive: true });
    },
  };
}

async function startHolder([command = '', ...args]: readonly string[]): Promise<Holder> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const line = await Promise.race([once(createInterface(child.stdout), 'line'), exited]);
  const answer =
    typeof line[0] === 'string' ? (JSON.parse(line[0]) as Partial<Holder> & { code?: string }) : {};
  const { connectionString, pid } = answer;
  if (connectionString === undefined || pid === undefined) throw new HolderError(answer);
  return {
    connectionString,
    pid,
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Runs one statement on a connection of its own. */
export async function query(connectionString: string, text: string): Promise<unknown[]> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}
