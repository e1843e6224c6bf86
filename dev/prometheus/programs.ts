import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { runQuietly } from '../../scripts/setup/exec.mjs';
import { cachedFolder, madeOnce, runs } from '../made-once.ts';

/** What this machine lacks to run Prometheus, in a sentence for people; null when nothing. */
export function missingForPrometheus(): string | null {
  if (existsSync(folder()) || runs('apt-get', '--version')) return null;
  return 'apt-get fetches Prometheus, for the tests of alerts and dashboards';
}

export interface PrometheusPrograms {
  prometheus: string;
  promtool: string;
}

/**
 * Paths of Debian's Prometheus. Its package is fetched once and unpacked into the cache, not installed: installing it
 * would start a service. Processes that want it meanwhile wait.
 * @throws when it cannot be had
 */
export function prometheusPrograms(): Promise<PrometheusPrograms> {
  // The lock is for processes: within one, all wait for the same.
  return (fetched ??= fetchPrograms());
}

let fetched: Promise<PrometheusPrograms> | undefined;

async function fetchPrograms(): Promise<PrometheusPrograms> {
  const ready = folder();
  await madeOnce(ready, { make: unpack, result: 'root' });
  return { prometheus: join(ready, 'usr/bin/prometheus'), promtool: join(ready, 'usr/bin/promtool') };
}

async function unpack(build: string, onStart: (pid: number) => void): Promise<void> {
  for (const part of ['lists/partial', 'cache/archives/partial', 'root'])
    mkdirSync(join(build, part), { recursive: true });
  const run = (command: string, ...args: string[]): Promise<boolean> =>
    runQuietly(command, args, { onStart, cwd: build });
  // Lists of its own, when the system's are missing or old: those may be locked, and are not ours to change.
  const own = [`Dir::State::Lists=${join(build, 'lists')}`, `Dir::Cache=${join(build, 'cache')}`];
  const ownLists = ['APT::Sandbox::User=root', 'Acquire::Retries=3', ...own].flatMap((each) => ['-o', each]);
  const isHere =
    (await run('apt-get', '-q', 'download', 'prometheus')) ||
    ((await run('apt-get', '-q', ...ownLists, 'update')) &&
      (await run('apt-get', '-q', ...ownLists, 'download', 'prometheus')));
  const archive = readdirSync(build).find((name) => name.endsWith('.deb'));
  if (!isHere || archive === undefined || !(await run('dpkg-deb', '-x', archive, 'root')))
    throw new Error(missingForPrometheus() ?? 'the package of Prometheus could not be fetched');
}

const folder = (): string => cachedFolder('prometheus', process.arch);
