import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { firstClosedPath } from './access.ts';
import { PostgresError } from './errors.ts';

const run = promisify(execFile);
const USER = 'postgres';

/** The system user that PostgreSQL's processes run as, and how to start a program as that user. */
export interface DatabaseUser {
  /** Whom the data belongs to; undefined when it is simply the user of this process. */
  owner: { uid: number; gid: number } | undefined;
  /**
   * A command line that runs the program as this user, able to enter `paths` and to execute `programs` though the
   * folders above them may be closed to it (a clone in a folder of mode 0700). `onParentDeath` is sent to it when
   * this process ends in any way, where the system can do that.
   * @throws PostgresError `closed_folder` when the paths are closed and the system cannot open them to this user.
   */
  command(program: string, args: readonly string[], options: CommandOptions): [string, string[]];
}

interface CommandOptions {
  onParentDeath: 'QUIT' | 'KILL';
  paths: readonly string[];
  programs: readonly string[];
}

/** As root: the system user `postgres`, made when missing (PostgreSQL refuses to run as root). Else: ourselves. */
export async function findDatabaseUser(): Promise<DatabaseUser> {
  const setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path));
  if (process.getuid?.() !== 0) return ownUser(setpriv);
  if (setpriv === undefined) {
    throw new PostgresError('no_database_user', 'as root, PostgreSQL needs setpriv (Debian: util-linux)');
  }
  const owner = (await lookUp()) ?? (await createUser());
  return systemUser(setpriv, owner);
}

function ownUser(setpriv: string | undefined): DatabaseUser {
  return {
    owner: undefined,
    command: (program, args, { onParentDeath }) =>
      setpriv === undefined
        ? [program, [...args]]
        : [setpriv, ['--pdeathsig', onParentDeath, '--', program, ...args]],
  };
}

function systemUser(setpriv: string, owner: { uid: number; gid: number }): DatabaseUser {
  return {
    owner,
    command: (program, args, { onParentDeath, paths, programs }) => {
      const privileges = [
        ...['--reuid', String(owner.uid), '--regid', String(owner.gid), '--clear-groups'],
        ...['--no-new-privs', '--pdeathsig', onParentDeath],
        ...capabilityFlags(owner, paths, programs),
      ];
      return [setpriv, [...privileges, '--', program, ...args]];
    },
  };
}

/**
 * Flags that keep one capability over the change of user when something on the way is closed to it: the right to
 * search and read folders, or where the container has not got that (or a program may be executed by root alone), the
 * right to pass by file modes. `no_setuid_fixup` goes with it: without, access(2), by which PostgreSQL's programs look
 * for each other, ignores capabilities of users other than root.
 */
function capabilityFlags(
  owner: { uid: number; gid: number },
  paths: readonly string[],
  programs: readonly string[],
): string[] {
  const closedProgram = firstClosedPath(programs, owner, 'execute');
  const closed = closedProgram ?? firstClosedPath([...paths, ...programs], owner, 'enter');
  if (closed === undefined) return [];
  const held = heldCapabilities();
  const candidates = closedProgram === undefined ? ['dac_read_search', 'dac_override'] : ['dac_override'];
  const capability = candidates.find((name) => held.has(name));
  if (capability === undefined || !held.has('setpcap')) {
    throw new PostgresError(
      'closed_folder',
      `the user ${USER} may not use ${closed}, and this system lets root not pass that right on: ` +
        `run "chmod o+x ${closed}", or choose another place`,
    );
  }
  const only = `-all,+${capability}`;
  return ['--inh-caps', only, '--ambient-caps', only, '--securebits', '+no_setuid_fixup'];
}

/** Those of the capabilities we may need that this process may pass on (capabilities(7)). */
function heldCapabilities(): Set<string> {
  const numbers = { dac_override: 1n, dac_read_search: 2n, setpcap: 8n };
  const status = readFileSync('/proc/self/status', 'utf8');
  const mask = (field: string): bigint =>
    BigInt(`0x${new RegExp(`^${field}:\\s*([0-9a-f]+)$`, 'm').exec(status)?.[1] ?? '0'}`);
  const usable = mask('CapPrm') & mask('CapBnd');
  return new Set(
    Object.entries(numbers).flatMap(([name, bit]) => (((usable >> bit) & 1n) === 1n ? [name] : [])),
  );
}

async function lookUp(): Promise<{ uid: number; gid: number } | undefined> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', USER]), run('id', ['-g', USER])]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch {
    return undefined;
  }
}

async function createUser(): Promise<{ uid: number; gid: number }> {
  const args = ['--system', '--user-group', '--no-create-home', '--home-dir', '/nonexistent'];
  let cause: unknown;
  try {
    await run('useradd', [...args, '--shell', '/usr/sbin/nologin', USER]);
  } catch (error) {
    cause = error;
  }
  // Looked up even after a failure: another start may have made the user at the same moment.
  const owner = await lookUp();
  if (owner) return owner;
  throw new PostgresError('no_database_user', `as root, PostgreSQL needs a system user named ${USER}`, {
    cause,
  });
}
