import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

const scripts = dirname(dirname(dirname(new URL(import.meta.url).pathname)));

/** What a finished command said and how it ended. */
interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  out: string;
  err: string;
}

interface Running {
  child: ChildProcess;
  ended: Promise<Ended>;
}

/** A small clone: the real set-up, an entry that the test writes, and one package, `node`, that needs no network. */
export interface Clone {
  root: string;
  /** Commands that come first on the path: the stand-in npm writes `calls` here. */
  bin: string;
  run(args: readonly string[], env?: NodeJS.ProcessEnv): Running;
  /** Starts a script of package.json by the real npm. */
  npm(...args: string[]): Running;
  /** The command lines that the stand-in npm was called with, `--version` apart. */
  npmCalls(): string[];
  remove(): void;
}

/** A folder of mode 0700 with a space in its name. */
export async function createClone(entry: string): Promise<Clone> {
  const parent = await mkdtemp(join(tmpdir(), 'millrace setup-'));
  const root = join(parent, 'mill race');
  const bin = join(parent, 'bin');
  mkdirSync(join(root, 'embedded/src'), { recursive: true });
  mkdirSync(bin);
  cpSync(scripts, join(root, 'scripts'), {
    recursive: true,
    filter: (path) => !path.endsWith('.ts') && !path.endsWith('testing'),
  });
  writeFileSync(join(root, 'embedded/src/main.ts'), entry);
  writePackages(root);
  writeProgram(join(bin, 'npm'), standInNpm);
  for (const tool of ['ffmpeg', 'ffprobe']) writeProgram(join(bin, tool), '#!/bin/sh\nexit 0\n');

  const children: ChildProcess[] = [];
  const start = (command: string, args: readonly string[], path: string, env: NodeJS.ProcessEnv): Running => {
    const child = spawn(command, args, {
      cwd: root,
      env: { ...outsideNpm(), PATH: path, CALLS: join(bin, 'calls'), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own, so that nothing of a failed test is left.
      detached: true,
    });
    children.push(child);
    return { child, ended: collect(child) };
  };
  const path = process.env['PATH'] ?? '';
  return {
    root,
    bin,
    run: (args, env = {}) =>
      start(process.execPath, [join(root, 'scripts/run.mjs'), ...args], `${bin}${delimiter}${path}`, env),
    npm: (...args) => start('npm', args, path, {}),
    npmCalls: () => {
      const path = join(bin, 'calls');
      return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
    },
    remove: () => {
      for (const { pid } of children) endGroup(pid);
      rmSync(parent, { recursive: true, force: true });
    },
  };
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Writes an executable file. */
export function writeProgram(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, 0o755);
}

/** The environment without what an npm above the tests has put there. */
function outsideNpm(): NodeJS.ProcessEnv {
  const names = Object.keys(process.env).filter((name) => !/^npm_|^INIT_CWD$|^NODE_OPTIONS$/.test(name));
  return Object.fromEntries(names.map((name) => [name, process.env[name]]));
}

function writePackages(root: string): void {
  const packages = {
    '': { name: 'clone', dependencies: { node: 'file:vendor/node' } },
    'node_modules/node': { resolved: 'vendor/node', link: true },
    'vendor/node': { version: '24.0.0', bin: { node: 'bin/node' } },
  };
  const json = (path: string, value: object): void => writeFileSync(join(root, path), JSON.stringify(value));
  const { scripts: npmScripts } = JSON.parse(
    readFileSync(join(dirname(scripts), 'package.json'), 'utf8'),
  ) as {
    scripts: Record<string, string>;
  };
  json('package.json', {
    ...{ name: 'clone', private: true, type: 'module', scripts: npmScripts },
    dependencies: { node: 'file:vendor/node' },
  });
  json('package-lock.json', { name: 'clone', lockfileVersion: 3, requires: true, packages });
  writeProgram(join(root, 'vendor/node/bin/node'), `#!/bin/sh\nexec "${process.execPath}" "$@"\n`);
  json('vendor/node/package.json', { name: 'node', version: '24.0.0', bin: { node: 'bin/node' } });
}

async function collect(child: ChildProcess): Promise<Ended> {
  const said = { out: '', err: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (said.out += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said.err += text));
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  return { code, signal, ...said };
}

/**
 * Does what `npm ci` does to the folder, as slowly as the test wants: with WAIT_FOR it says `started` by a file of
 * that name and `.started`, and goes on when the file itself is there.
 */
const standInNpm = `#!${process.execPath}
const { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const { CALLS, NPM_FAILS, NPM_VERSION, WAIT_FOR } = process.env;
if (process.argv.includes('--version')) {
  console.log(NPM_VERSION || '11.19.1');
  process.exit(0);
}
appendFileSync(CALLS, process.argv.slice(2).join(' ') + '\\n');
console.log('noise on standard output');
rmSync('node_modules', { recursive: true, force: true });
mkdirSync('node_modules/node/bin', { recursive: true });
const finish = () => {
  if (NPM_FAILS) {
    console.error('npm error the registry is down');
    process.exit(1);
  }
  writeFileSync('node_modules/node/bin/node', readFileSync('vendor/node/bin/node'));
  chmodSync('node_modules/node/bin/node', 0o755);
  const { packages, ...rest } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  delete packages[''];
  writeFileSync('node_modules/.package-lock.json', JSON.stringify({ ...rest, packages }));
};
if (!WAIT_FOR) finish();
else {
  writeFileSync(WAIT_FOR + '.started', String(process.pid));
  const timer = setInterval(() => {
    if (!existsSync(WAIT_FOR)) return;
    clearInterval(timer);
    finish();
  }, 10);
}
`;
