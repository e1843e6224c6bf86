import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { describeWith } from '../real-part.ts';
import { type ControlPlane, missingForKubernetes, startControlPlane } from './control-plane.ts';

const buildMs = 30 * 60_000;
const image = 'nothing.example/app:1';
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'app' },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: 'app' } },
    template: { metadata: { labels: { app: 'app' } }, spec: { containers: [{ name: 'app', image }] } },
  },
};

describeWith(missingForKubernetes(), 'a control plane', () => {
  let plane: ControlPlane;
  const kubectl = async (...args: string[]): Promise<string> => {
    const { stdout } = await promisify(execFile)(plane.kubectl, ['--kubeconfig', plane.kubeconfig, ...args]);
    return stdout;
  };
  const apply = async (object: object): Promise<void> => {
    const applied = promisify(execFile)(plane.kubectl, [
      '--kubeconfig',
      plane.kubeconfig,
      'apply',
      '-f',
      '-',
    ]);
    applied.child.stdin?.end(JSON.stringify(object));
    await applied;
  };

  beforeAll(async () => {
    plane = await startControlPlane({ nodes: 2 });
  }, buildMs);
  afterAll(async () => {
    await plane.stop();
    expect(existsSync(dirname(dirname(plane.kubeconfig)))).toBe(false);
  });

  it('is the version that its modules say', async () => {
    const { serverVersion } = JSON.parse(await kubectl('version', '-o', 'json')) as {
      serverVersion: { gitVersion: string };
    };
    expect(serverVersion.gitVersion).toBe('v1.37.2');
  });

  it('runs the pods of a deployment on its fake nodes', async () => {
    await apply(deployment);
    await kubectl('rollout', 'status', 'deployment/app', '--timeout=60s');
    const nodes = await kubectl('get', 'pods', '-o', 'jsonpath={.items[*].spec.nodeName}');
    expect(nodes.split(' ').sort()).toEqual(['kwok-1', 'kwok-2']);
  });

  it('knows what it knew when its API server was killed', async () => {
    await plane.kill();
    await expect(kubectl('get', 'deployment', 'app')).rejects.toThrow(/refused/);
    await plane.start();
    expect(await kubectl('get', 'deployment', 'app', '-o', 'name')).toBe('deployment.apps/app\n');
  });

  it('answers nothing while it is frozen, and everything after', async () => {
    plane.freeze();
    await expect(kubectl('get', 'nodes', '--request-timeout=1s')).rejects.toThrow();
    plane.thaw();
    expect(await waitFor(() => kubectl('get', 'nodes', '-o', 'name'))).toContain('node/kwok-1');
  });
});
