import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runQuietly } from '../../scripts/setup/exec.mjs';
import { say } from '../../scripts/setup/say.mjs';
import { cachedFolder, madeOnce, runs } from '../made-once.ts';

const module = fileURLToPath(new URL('.', import.meta.url));

/** What is built: the name of the file that `go build` makes, and its package. */
const tools = {
  server: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  'kube-scheduler': 'k8s.io/kubernetes/cmd/kube-scheduler',
  kwok: 'sigs.k8s.io/kwok/cmd/kwok',
};
/** A server that is not told its version says v0.0.0, which clients and charts take for an old one. */
const version = { gitVersion: 'v1.37.2', gitMajor: '1', gitMinor: '37' };
const versionFlags = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'].flatMap((name) =>
  Object.entries(version).map(([key, value]) => `-X ${name}.${key}=${value}`),
);
const buildFlags = ['-trimpath', '-buildvcs=false', '-ldflags', ['-s', '-w', ...versionFlags].join(' ')];
const buildEnv = { CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '' };
/** What makes nodes ready and pods run that nobody runs: kwok brings it as files, not in its program. */
const stages = ['node/fast', 'node/heartbeat', 'pod/fast'].map((name) => join('kustomize', 'stage', name));

/** Paths of the programs of a control plane. */
export interface ControlPlanePrograms {
  etcd: string;
  apiServer: string;
  controllerManager: string;
  scheduler: string;
  kwok: string;
  /** What kwok does with its nodes and their pods, for its `--config`. */
  kwokStages: string;
}

/** What this machine lacks to build a control plane, in a sentence for people; null when nothing. */
export function missingForControlPlane(): string | null {
  if (!runs('openssl', 'version'))
    return 'OpenSSL (the command `openssl`) makes the certificates of Kubernetes';
  if (existsSync(folder())) return null;
  return runs('go', 'version')
    ? null
    : 'Go (1.26 or later, the command `go`) builds the Kubernetes of the tests';
}

/**
 * The programs of a Kubernetes control plane, in the versions that `go.sum` names. Built once, for some minutes, and
 * kept in the cache; processes that want them meanwhile wait.
 * @throws when they cannot be built
 */
export function controlPlanePrograms(): Promise<ControlPlanePrograms> {
  // The lock is for processes: within one, all wait for the same build.
  return (built ??= build());
}

let built: Promise<ControlPlanePrograms> | undefined;

async function build(): Promise<ControlPlanePrograms> {
  const target = folder();
  // What an interrupted build has compiled is kept: the next goes on from there.
  await madeOnce(target, { make: buildIn, result: 'bin', resumes: true });
  const path = (name: string): string => join(target, name);
  return {
    etcd: path('server'),
    apiServer: path('kube-apiserver'),
    controllerManager: path('kube-controller-manager'),
    scheduler: path('kube-scheduler'),
    kwok: path('kwok'),
    kwokStages: path('kwok-stages.yaml'),
  };
}

async function buildIn(sources: string, onStart: (pid: number) => void): Promise<void> {
  say('building the Kubernetes of the tests (once, for some minutes)');
  const env = { ...process.env, ...buildEnv, GOCACHE: join(sources, 'compiled') };
  for (const file of ['go.mod', 'go.sum']) cpSync(join(module, file), join(sources, file));
  const args = ['build', ...buildFlags, '-o', 'bin/', ...Object.values(tools)];
  // Whatever else the machine does comes first.
  const done = await runQuietly('nice', ['-n', '10', 'go', ...args], { onStart, cwd: sources, env });
  if (!done) throw new Error(missingForControlPlane() ?? 'Kubernetes could not be built');
  writeFileSync(join(sources, 'bin', 'kwok-stages.yaml'), readStages(sources, env));
}

function readStages(cwd: string, env: NodeJS.ProcessEnv): string {
  const list = (args: string[]): string => execFileSync('go', args, { cwd, env, encoding: 'utf8' }).trim();
  const kwok = list(['list', '-m', '-f', '{{.Dir}}', 'sigs.k8s.io/kwok']);
  const files = stages.flatMap((stage) => {
    const named = /^resources:\n((?:- .+\n?)+)/m.exec(
      readFileSync(join(kwok, stage, 'kustomization.yaml'), 'utf8'),
    );
    const names = (named?.[1] ?? '').split('\n').map((line) => line.replace(/^- /, ''));
    return names.filter((name) => name !== '').map((name) => join(kwok, stage, name));
  });
  if (files.length < stages.length) throw new Error('kwok keeps its stages elsewhere now');
  return files.map((file) => readFileSync(file, 'utf8').trim()).join('\n---\n');
}

const folder = (): string =>
  cachedFolder('kubernetes', readFileSync(join(module, 'go.sum')), [
    tools,
    buildFlags,
    buildEnv,
    stages,
    process.platform,
    process.arch,
  ]);
