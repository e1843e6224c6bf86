import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { findExecutable } from '../../scripts/setup/exec.mjs';

/** What this machine lacks to make root file systems as images have them, in a sentence for people; null when nothing. */
export function missingForImages(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'Linux, and the rights of root';
  if (!existsSync('/etc/debian_version')) return 'Debian, whose system is what images stand on';
  const folders = (process.env['PATH'] ?? '').split(':');
  const needed = ['unshare', 'nsenter', 'setpriv', 'chroot', 'mknod'];
  const lacking = needed.filter((name) => findExecutable(folders, name) === undefined);
  if (lacking.length > 0) return `the commands ${lacking.join(', ')}`;
  const script = 'mount -t tmpfs none /mnt && mkdir /mnt/u /mnt/w /mnt/m && mount -t overlay none /mnt/m -o ';
  const probe = `${script}lowerdir=/etc,upperdir=/mnt/u,workdir=/mnt/w`;
  const works = spawnSync('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', probe]).status === 0;
  return works ? null : 'a kernel that lays file systems over another';
}

/** Mounts that this machine does not see. They are gone when it is closed, and with them all that is on a tmpfs. */
export interface MountNamespace {
  /** The start of a command line: what follows runs inside. */
  readonly enter: readonly string[];
  /** How this machine reaches a path inside. */
  path(inside: string): string;
  /** @throws Error with its last words when it does not end well */
  run(script: string, env?: NodeJS.ProcessEnv): Promise<void>;
  close(): Promise<void>;
}

export async function openMountNamespace(): Promise<MountNamespace> {
  // It ends with its input, whatever becomes of this process.
  const args = ['--mount', '--propagation', 'private', 'sh', '-c', 'echo open; exec cat'];
  const holder = spawn('unshare', args, { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(holder.stdout, 'data');
  const enter = ['nsenter', '--mount', `--target=${holder.pid ?? 0}`, '--'];
  return {
    enter,
    path: (inside) => `/proc/${holder.pid ?? 0}/root${inside}`,
    run: async (script, env = {}) => {
      const [program = '', ...rest] = enter;
      const child = spawn(program, [...rest, 'sh', '-euc', script], {
        ...{ stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } },
      });
      await untilEnded(child, script);
    },
    close: async () => {
      const ended = once(holder, 'exit');
      holder.stdin.end();
      await ended;
    },
  };
}

const lastWords = 4_000;

async function untilEnded(child: ChildProcess, what: string): Promise<void> {
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-lastWords);
    });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`failed (${code ?? 'killed'}): ${what.slice(0, 500)}\n${said}`);
}
