import { execFileSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type MountNamespace } from './namespace.ts';

/** What stays of this machine's system at the top of an image's. */
const kept = /^(bin|sbin|lib.*|usr|etc|var)$/;
/** What is this machine's own below that: not of a fresh Debian, or brought by the image of Node.js. */
const removed = [
  ...['usr/local', 'usr/lib/node_modules', 'var/lib/apt/lists', 'var/tmp'],
  ...['node', 'npm', 'npx', 'corepack', 'ffmpeg', 'ffprobe', 'ffplay'].map((name) => `usr/bin/${name}`),
];

/** The version of Node.js in a base image that we can stand in for: `node:24.21.0-bookworm-slim`. */
export const nodeVersionOf = (image: string): string | undefined =>
  /^node:(\d+\.\d+\.\d+)-[a-z]+-slim$/.exec(image)?.[1];

/**
 * Makes what stands in for an image of Node.js on Debian: layers over this machine's own system that take away what it
 * has more (ffmpeg above all) and add Node.js and npm where the image has them.
 * @param folder on a tmpfs of the namespace: layers must not lie in one another
 * @returns layers for overlayfs, the upper one first
 */
export async function makeBaseLayers(folder: string, namespace: MountNamespace): Promise<string[]> {
  const [hidden, added] = ['hidden', 'added'].map((name) => namespace.path(join(folder, name))) as [
    string,
    string,
  ];
  const top = (await readdir('/')).filter((name) => !kept.test(name));
  for (const path of [...top, ...removed]) {
    await mkdir(dirname(join(hidden, path)), { recursive: true });
    // To overlayfs a character device 0/0 says that there is nothing, whatever lies below.
    execFileSync('mknod', [join(hidden, path), 'c', '0', '0']);
  }
  const modes = { dev: 0o755, proc: 0o755, sys: 0o755, run: 0o755, root: 0o700, home: 0o755, tmp: 0o1777 };
  for (const [name, mode] of Object.entries({ ...modes, 'var/tmp': 0o1777, 'var/lib/apt/lists': 0o755 }))
    await mkdirExactly(join(added, name), mode);
  await addNode(join(added, 'usr/local'));
  await writeFile(join(await made(added, 'var/lib/dpkg'), 'status'), await withoutFfmpeg());
  return [join(folder, 'added'), join(folder, 'hidden'), '/'];
}

async function addNode(folder: string): Promise<void> {
  const bin = await made(folder, 'bin');
  await cp(process.execPath, join(bin, 'node'));
  const npm = dirname(dirname(realpathSync(execFileSync('which', ['npm'], { encoding: 'utf8' }).trim())));
  await cp(npm, join(folder, 'lib/node_modules/npm'), { recursive: true, verbatimSymlinks: true });
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(bin, 'npm'));
}

/** What dpkg knows to be installed, but for ffmpeg, so that an image that wants it installs it. */
async function withoutFfmpeg(): Promise<string> {
  const status = await readFile('/var/lib/dpkg/status', 'utf8');
  return status
    .split('\n\n')
    .filter((entry) => !entry.startsWith('Package: ffmpeg\n'))
    .join('\n\n');
}

async function made(folder: string, path: string): Promise<string> {
  await mkdir(join(folder, path), { recursive: true });
  return join(folder, path);
}

async function mkdirExactly(path: string, mode: number): Promise<void> {
  await mkdir(path, { recursive: true });
  execFileSync('chmod', [mode.toString(8), path]);
}
