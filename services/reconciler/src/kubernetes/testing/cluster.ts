import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { CustomObjectsApi, loadYaml } from '@kubernetes/client-node';
import { type ControlPlane, startControlPlane } from '../../../../../dev/kubernetes/control-plane.ts';
import { type Kind, type KubernetesObject, kubernetesObject } from '../api.ts';
import { SharedConnections } from '../shared-connections.ts';

const chartFiles = fileURLToPath(new URL('../../../../../charts/millrace/files', import.meta.url));
const group = { group: 'millrace.dev', version: 'v1alpha1', namespace: 'default' };
const plurals: Record<Kind, string> = { VideoHold: 'videoholds', Plan: 'plans' };

/** A control plane that knows the chart's definitions, and the ways in which tests change its objects. */
export interface TestCluster {
  readonly plane: ControlPlane;
  /** @returns what it wrote to its standard output */
  kubectl(args: readonly string[], input?: object): Promise<string>;
  /** Path of a kubeconfig of the service account `operator`, which may do what the chart's rules say. */
  accountKubeconfig(): Promise<string>;
  create(kind: Kind, name: string, spec: object): Promise<void>;
  /** Changes an object by a merge patch. */
  change(kind: Kind, name: string, patch: object): Promise<void>;
  remove(kind: Kind, name: string): Promise<void>;
  /** Null when there is none. */
  find(kind: Kind, name: string): Promise<SeenObject | null>;
  stop(): Promise<void>;
}

/** What tests look at. */
export type SeenObject = KubernetesObject & {
  status?: {
    observedGeneration?: number;
    heldSince?: string;
    effectiveSince?: string;
    appliedAt?: string;
    conditions?: { type: string; status: string; reason: string; lastTransitionTime: string }[];
  };
};

/** `Held=True/Held, Effective=…`: the conditions of an object in one line. */
export const conditionsOf = (object: SeenObject | null): string =>
  (object?.status?.conditions ?? [])
    .map(({ type, status, reason }) => `${type}=${status}/${reason}`)
    .join(', ');

export async function startTestCluster(): Promise<TestCluster> {
  const plane = await startControlPlane({ controllers: false });
  const config = new SharedConnections();
  config.loadFromFile(plane.kubeconfig);
  const objects = config.makeApiClient(CustomObjectsApi);
  const kubectl: TestCluster['kubectl'] = async (args, input) => {
    const running = promisify(execFile)(plane.kubectl, ['--kubeconfig', plane.kubeconfig, ...args]);
    running.child.stdin?.end(input === undefined ? '' : JSON.stringify(input));
    return (await running).stdout;
  };
  const stop = async (): Promise<void> => {
    await config.close();
    await plane.stop();
  };
  try {
    await kubectl(['apply', '-f', `${chartFiles}/crds`]);
    await kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s']);
  } catch (error) {
    await stop();
    throw error;
  }
  const at = (kind: Kind) => ({ ...group, plural: plurals[kind] });
  return {
    ...{ plane, kubectl, stop },
    accountKubeconfig: () => accountKubeconfig(plane, kubectl),
    create: async (kind, name, spec) => {
      const body = { apiVersion: 'millrace.dev/v1alpha1', kind, metadata: { name }, spec };
      await objects.createNamespacedCustomObject({ ...at(kind), body });
    },
    change: async (kind, name, patch) => {
      const merge = ['patch', plurals[kind], name, '--type=merge', '-p', JSON.stringify(patch)];
      await kubectl(merge);
    },
    remove: async (kind, name) => {
      await objects.deleteNamespacedCustomObject({ ...at(kind), name });
    },
    find: async (kind, name) => {
      try {
        return kubernetesObject.parse(
          await objects.getNamespacedCustomObject({ ...at(kind), name }),
        ) as SeenObject;
      } catch (error) {
        if ((error as { code?: number }).code === 404) return null;
        throw error;
      }
    },
  };
}

async function accountKubeconfig(plane: ControlPlane, kubectl: TestCluster['kubectl']): Promise<string> {
  const name = 'operator';
  const rbac = 'rbac.authorization.k8s.io';
  const rules = loadYaml(await readFile(`${chartFiles}/operator-rules.yaml`, 'utf8'));
  const metadata = { name, namespace: 'default' };
  await kubectl(['apply', '-f', '-'], {
    ...{ apiVersion: 'v1', kind: 'List' },
    items: [
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
      { apiVersion: `${rbac}/v1`, kind: 'Role', metadata, rules },
      {
        ...{ apiVersion: `${rbac}/v1`, kind: 'RoleBinding', metadata },
        roleRef: { apiGroup: rbac, kind: 'Role', name },
        subjects: [{ kind: 'ServiceAccount', ...metadata }],
      },
    ],
  });
  const token = (await kubectl(['create', 'token', name, '--duration=1h'])).trim();
  const config = JSON.parse(await readFile(plane.kubeconfig, 'utf8')) as { users: object[] };
  const path = `${plane.kubeconfig}.account`;
  const users = config.users.map((user) => ({ ...user, user: { token } }));
  await writeFile(path, JSON.stringify({ ...config, users }));
  return path;
}
