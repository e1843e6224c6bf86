import { type ChildProcess } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { get as getSecurely } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../free-ports.ts';
import { serverFolder, serverProcess, type ServerProcess } from '../server-process.ts';
import { type CertificateOwner, kubeconfigOf, makeCertificates } from './certificates.ts';
import { type KubernetesClients, kubernetesClients, missingForClients } from './clients.ts';
import { apiServerArgs, controllerManagerArgs, etcdArgs, kwokArgs, schedulerArgs } from './flags.ts';
import { fakeNodes } from './nodes.ts';
import { controlPlanePrograms, missingForControlPlane } from './programs.ts';

export interface ControlPlaneOptions {
  /**
   * With controllers (and a scheduler) there are Deployments, garbage collection and the end of namespaces; without
   * them objects alone, in half of the time and memory. With them unless told.
   */
  controllers?: boolean;
  /** Fake nodes whose pods run and get ready at once; needs the controllers. None unless told. */
  nodes?: number;
}

/** A Kubernetes control plane on loopback. */
export interface ControlPlane {
  /** `https://127.0.0.1:PORT`; it stays the same over a kill. */
  readonly server: string;
  /** Path of a kubeconfig that may do everything. */
  readonly kubeconfig: string;
  /**
   * Paths of the programs; give them `kubeconfig` by `--kubeconfig` or `KUBECONFIG`. What they keep for later they keep
   * beside the cluster, not in the home folder: another cluster may have its port by then.
   */
  readonly kubectl: string;
  readonly helm: string;
  /** Ends the API server as a power cut would; etcd keeps what it knew. */
  kill(): Promise<void>;
  /** Starts the API server again after `kill`. */
  start(): Promise<void>;
  /** Freezes the API server: it holds its connections and answers nothing. */
  freeze(): void;
  thaw(): void;
  /** Ends everything and removes all of it. */
  stop(): Promise<void>;
}

const host = '127.0.0.1';
const startMs = 120_000;

/** What this machine lacks to run a control plane, in a sentence for people; null when nothing. */
export const missingForKubernetes = (): string | null => missingForControlPlane() ?? missingForClients();

/**
 * Starts a real control plane (etcd, API server and, unless told otherwise, controllers and scheduler) and resolves
 * when it takes requests. The first start on a machine builds it, for some minutes.
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const { controllers = true, nodes = 0 } = options;
  const programs = await controlPlanePrograms();
  const { dataDir, remove } = await serverFolder(undefined, 'millrace-kubernetes-');
  const running: ServerProcess[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(running.map((server) => server.end('SIGKILL')));
    await remove();
  };
  try {
    const [etcdPort = 0, peerPort = 0, apiPort = 0, managerPort = 0, schedulerPort = 0, kwokPort = 0] =
      await freePorts(6, host);
    const server = `https://${host}:${apiPort}`;
    const clients = await clientsOf(dataDir);
    const folder = join(dataDir, 'certificates');
    await mkdir(folder);
    await makeCertificates(folder);
    const kubeconfig = async (owner: CertificateOwner): Promise<string> => {
      const path = join(folder, `${owner}.kubeconfig`);
      await writeFile(path, kubeconfigOf(owner, server, folder), { mode: 0o600 });
      return path;
    };
    const admin = await kubeconfig('admin');
    const asAdmin = await credentials(folder);

    const begin = async (command: [string, ...string[]], address: string): Promise<ServerProcess> => {
      const untilReady = (child: ChildProcess): Promise<void> => untilAnswers(child, address, asAdmin);
      const begun = serverProcess({ command, detached: false, untilReady });
      running.unshift(begun);
      await begun.start();
      return begun;
    };

    const etcd = { data: join(dataDir, 'etcd'), port: etcdPort, peerPort, host };
    await begin([programs.etcd, ...etcdArgs(etcd)], `http://${host}:${etcdPort}/readyz`);
    const apiArgs = apiServerArgs({ folder, host, port: apiPort, etcdPort });
    const api = await begin([programs.apiServer, ...apiArgs], `${server}/readyz`);
    if (controllers) {
      const manager = { folder, host, port: managerPort, kubeconfig: await kubeconfig('controller-manager') };
      const scheduler = { folder, host, port: schedulerPort, kubeconfig: await kubeconfig('scheduler') };
      await Promise.all([
        begin(
          [programs.controllerManager, ...controllerManagerArgs(manager)],
          // Without it no pod can be made.
          `${server}/api/v1/namespaces/default/serviceaccounts/default`,
        ),
        begin([programs.scheduler, ...schedulerArgs(scheduler)], `https://${host}:${schedulerPort}/healthz`),
      ]);
    }
    if (nodes > 0) {
      const kwok = { host, port: kwokPort, kubeconfig: admin, stages: programs.kwokStages };
      await begin([programs.kwok, ...kwokArgs(kwok)], `http://${host}:${kwokPort}/healthz`);
      await fakeNodes(clients.kubectl, admin, nodes);
    }
    return {
      ...{ server, kubeconfig: admin, ...clients, stop },
      kill: () => api.end('SIGKILL'),
      start: () => api.start(),
      freeze: () => api.signal('SIGSTOP'),
      thaw: () => api.signal('SIGCONT'),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The clients as scripts that keep their caches in the folder. */
async function clientsOf(dataDir: string): Promise<KubernetesClients> {
  const { kubectl, helm } = await kubernetesClients();
  const wrap = async (name: string, program: string, variables: readonly string[]): Promise<string> => {
    const path = join(dataDir, name);
    const settings = variables.map((variable) => `${variable}='${join(dataDir, variable)}'`).join(' ');
    await writeFile(path, `#!/bin/sh\n${settings} exec '${program}' "$@"\n`, { mode: 0o755 });
    return path;
  };
  return {
    kubectl: await wrap('kubectl', kubectl, ['KUBECACHEDIR']),
    helm: await wrap('helm', helm, ['HELM_CACHE_HOME', 'HELM_CONFIG_HOME', 'HELM_DATA_HOME']),
  };
}

type Credentials = Record<'ca' | 'cert' | 'key', Buffer>;

async function credentials(folder: string): Promise<Credentials> {
  const [ca, cert, key] = await Promise.all(
    ['ca.crt', 'admin.crt', 'admin.key'].map((file) => readFile(join(folder, file))),
  );
  if (!ca || !cert || !key) throw new Error('there is no certificate');
  return { ca, cert, key };
}

/** Resolves when the address answers 200; rejects with the server's last words when it ends before. */
async function untilAnswers(child: ChildProcess, url: string, as: Credentials): Promise<void> {
  let told = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      told = (told + text).slice(-4_000);
    });
  }
  const failed = new Promise<never>((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code) =>
      reject(new Error(`${child.spawnfile} ended with ${code ?? 'a signal'}: ${told}`)),
    );
  });
  // Past the start nobody waits for it.
  failed.catch(() => undefined);
  const until = Date.now() + startMs;
  while (!(await Promise.race([answers(url, as), failed]))) {
    if (Date.now() > until) throw new Error(`${url} does not answer: ${told}`);
    await Promise.race([sleep(50), failed]);
  }
}

function answers(url: string, as: Credentials): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const options = { ...as, agent: false as const, timeout: 2_000 };
  const request = (url.startsWith('https:') ? getSecurely : get)(url, options, (response) => {
    response.resume();
    response.once('end', () => resolve(response.statusCode === 200));
    response.once('error', () => resolve(false));
  });
  request.once('timeout', () => request.destroy());
  request.once('error', () => resolve(false));
  return promise;
}
