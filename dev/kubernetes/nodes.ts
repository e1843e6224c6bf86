import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const room = { cpu: '32', memory: '64Gi', pods: '110', 'ephemeral-storage': '256Gi' };

/** Nodes, each in a zone of its own, that kwok keeps ready. */
const nodeList = (count: number): object => ({
  apiVersion: 'v1',
  kind: 'List',
  items: Array.from({ length: count }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: `kwok-${index + 1}`,
      annotations: { 'kwok.x-k8s.io/node': 'fake' },
      labels: {
        type: 'kwok',
        'kubernetes.io/os': 'linux',
        'kubernetes.io/hostname': `kwok-${index + 1}`,
        'topology.kubernetes.io/zone': `zone-${index + 1}`,
      },
    },
    status: { allocatable: room, capacity: room },
  })),
});

/** Adds fake nodes to the cluster, and resolves when all are ready. */
export async function fakeNodes(kubectl: string, kubeconfig: string, count: number): Promise<void> {
  const run = promisify(execFile);
  const applied = run(kubectl, ['--kubeconfig', kubeconfig, 'apply', '-f', '-']);
  const { stdin } = applied.child;
  if (stdin === null) throw new Error('kubectl has no input');
  stdin.end(JSON.stringify(nodeList(count)));
  await applied;
  const wait = ['wait', '--for=condition=Ready', 'node', '--all', '--timeout=120s'];
  await run(kubectl, ['--kubeconfig', kubeconfig, ...wait]);
}
