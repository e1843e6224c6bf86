import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { stringify } from 'yaml';
import { type ControlPlane, missingForKubernetes, startControlPlane } from '../kubernetes/control-plane.ts';
import { kubernetesClients } from '../kubernetes/clients.ts';
import { readRunbooks } from '../prometheus/runbooks.ts';
import { describeWith } from '../real-part.ts';
import { foreignDefinitions, missingForDefinitions } from './foreign-definitions.ts';
import { type AnyObject, ofKind } from './objects.ts';
import { chart, helm, renderChart, valuesArguments, valuesFiles } from './render.ts';

jest.setTimeout(600_000);

const namespace = 'media';
const waits = ['--wait', '--timeout', '300s'];

describeWith(missingForKubernetes() ?? missingForDefinitions(), 'the chart on a cluster', () => {
  let plane: ControlPlane;
  beforeAll(async () => {
    plane = await startControlPlane({ nodes: 3 });
    await kubectl(['create', 'namespace', namespace]);
    // Its pods are refused that are not what the restricted profile asks.
    await kubectl(['label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=restricted']);
    for (const path of await foreignDefinitions())
      await kubectl(['apply', '--server-side', '--filename', path]);
    const definitions = ofKind(await renderChart({ values: 'small' }), 'CustomResourceDefinition');
    // As if an earlier release had made them: the release of the tests takes them over.
    const owner = { 'meta.helm.sh/release-name': 'video', 'meta.helm.sh/release-namespace': namespace };
    for (const { metadata } of definitions) metadata.annotations = { ...metadata.annotations, ...owner };
    await apply(definitions);
    await kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s']);
  }, 45 * 60_000);
  afterAll(() => plane.stop());

  async function kubectl(args: readonly string[], input = ''): Promise<string> {
    const options = { maxBuffer: 64 * 1024 * 1024 };
    const running = promisify(execFile)(plane.kubectl, ['--kubeconfig', plane.kubeconfig, ...args], options);
    // A command that reads nothing may have ended already.
    running.child.stdin?.on('error', () => undefined).end(input);
    return (await running).stdout;
  }
  const apply = (objects: readonly AnyObject[], ...flags: string[]): Promise<string> =>
    kubectl(['apply', ...flags, '--filename', '-'], objects.map((each) => stringify(each)).join('---\n'));
  const release = (...args: string[]): Promise<string> =>
    helm([...args, '--namespace', namespace], { KUBECONFIG: plane.kubeconfig });
  const get = async (...args: string[]): Promise<Item[]> => {
    const text = await kubectl(['--namespace', namespace, 'get', ...args, '--output', 'json']);
    return (JSON.parse(text) as { items: Item[] }).items;
  };
  /** A script of whoever has set the namespace once. */
  async function inNamespace(script: string): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-kubeconfig-'));
    try {
      const kubeconfig = join(folder, 'config');
      await copyFile(plane.kubeconfig, kubeconfig);
      const { helm: program } = await kubernetesClients();
      const programs = [dirname(plane.kubectl), dirname(program), process.env['PATH']].join(':');
      const env = { ...process.env, KUBECONFIG: kubeconfig, PATH: programs };
      const set = `kubectl config set-context --current --namespace ${namespace}`;
      await promisify(execFile)('sh', ['-ec', `${set}\n${script}`], { env });
    } finally {
      await rm(folder, { recursive: true });
    }
  }
  const names = (items: readonly Item[]): string[] => items.map(({ metadata }) => metadata.name).sort();

  it.each([...valuesFiles.keys()])('is understood to the letter, with the values %s', async (values) => {
    const objects = await renderChart({ values });
    const answer = await apply(objects, '--dry-run=server', '--validate=strict');
    expect(answer.trim().split('\n')).toHaveLength(objects.length);
  });

  it('has the definitions of others as those publish them', async () => {
    const objects = await renderChart({ values: 'keda' });
    const [scaled] = ofKind(objects, 'ScaledObject');
    const misspelt = { ...(scaled as AnyObject), spec: { ...(scaled?.spec as object), minReplicas: 1 } };
    await expect(apply([misspelt], '--dry-run=server', '--validate=strict')).rejects.toThrow('minReplicas');
  });

  describe('as a release', () => {
    it('comes up, after what prepares it', async () => {
      await release('install', 'video', chart, ...valuesArguments({ values: 'small' }), ...waits);
      const pods = await get('pods', '--field-selector=status.phase=Running');
      const components = pods.map(({ metadata }) => metadata.labels?.['app.kubernetes.io/component']);
      const expected = ['api', 'cdn', 'encoder-standard', 'internal', 'reconciler', 'webhooks'];
      expect(components.sort()).toEqual(expected);
      expect(names(await get('jobs'))).toEqual(
        ['bucket', 'migrate', 'topics'].map((name) => `video-millrace-${name}`),
      );
    });

    it('lets each account do what it needs, and nothing more', async () => {
      await kubectl(['--namespace', namespace, 'create', 'serviceaccount', 'nobody']);
      const may = async (account: string): Promise<string[]> => {
        const as = `--as=system:serviceaccount:${namespace}:${account}`;
        const text = await kubectl(['--namespace', namespace, 'auth', 'can-i', '--list', '--no-headers', as]);
        return text
          .split('\n')
          .map((line) => line.replaceAll(/\s+/g, ' ').trim())
          .sort();
      };
      const nothing = await may('nobody');
      const accounts = names(await get('serviceaccounts')).filter((name) => name.startsWith('video-'));
      expect(accounts.length).toBeGreaterThanOrEqual(6);
      for (const account of accounts) {
        const more = (await may(account)).filter((line) => !nothing.includes(line));
        const wanted = account === 'video-millrace-reconciler' ? operatorMay : [];
        expect({ account, more }).toEqual({ account, more: wanted });
      }
    });

    it('lets the operator’s account do so in its own namespace alone', async () => {
      const as = `--as=system:serviceaccount:${namespace}:video-millrace-reconciler`;
      const can = (where: string, ...what: string[]): Promise<string> =>
        kubectl(['auth', 'can-i', ...what, '--namespace', where, as]).then(
          (answer) => answer.trim(),
          () => 'no',
        );
      expect(await can(namespace, 'list', 'videoholds.millrace.dev')).toBe('yes');
      expect(await can('default', 'list', 'videoholds.millrace.dev')).toBe('no');
      for (const verb of ['create', 'delete', 'update'])
        expect(await can(namespace, verb, 'videoholds.millrace.dev')).toBe('no');
      for (const resource of ['secrets', 'pods', 'configmaps', 'leases.coordination.k8s.io'])
        expect(await can(namespace, 'get', resource)).toBe('no');
    });

    it('upgrades only when what prepares it has ended well', async () => {
      const image = async (): Promise<string | undefined> =>
        (await get('deployments')).find(({ metadata }) => metadata.name === 'video-millrace-api')?.spec
          .template.spec.containers[0]?.image;
      const jobs = async (): Promise<(string | undefined)[]> =>
        (await get('jobs')).map(({ metadata }) => metadata.uid);
      const before = await jobs();
      const to = (tag: string, ...set: string[]): string[] => [
        ...['upgrade', 'video', chart],
        ...valuesArguments({ values: 'small', set: [`image.tag="${tag}"`, ...set] }),
      ];
      // Its pods find no node, as if the migration did not end.
      const stuck = to('0.2.0', 'nodeSelector={"there":"is-none"}');
      await expect(release(...stuck, '--timeout', '5s')).rejects.toThrow('pre-upgrade');
      expect(await image()).toBe('millrace/api:0.1.0');

      await release(...to('0.2.0'), ...waits);
      expect(await image()).toBe('millrace/api:0.2.0');
      expect((await jobs()).filter((uid) => before.includes(uid))).toEqual([]);

      const migrated = await jobs();
      await release('rollback', 'video', '1', ...waits);
      expect(await image()).toBe('millrace/api:0.1.0');
      // The schema stays: the release before runs on it.
      expect(await jobs()).toEqual(migrated);
    });

    it('keeps the pods that run when a scaler takes over as its README says', async () => {
      const readme = await readFile(join(chart, 'README.md'), 'utf8');
      const [block = ''] = /kubectl --namespace media scale [^`]*/.exec(readme) ?? [];
      // It speaks of a release called as the chart, from the root of the sources, with values of its own.
      const script = block
        .replace('deployment/millrace', 'deployment/video-millrace')
        .replace('upgrade millrace charts/millrace', `upgrade video ${chart}`)
        .replace('--values my-values.yaml', valuesArguments({ values: 'small' }).join(' '));
      await inNamespace(script);
      const replicas = async (): Promise<(number | undefined)[]> =>
        (await get('deployments'))
          .filter(({ metadata }) => metadata.name === 'video-millrace-api')
          .map(({ spec }) => spec.replicas);
      expect(names(await get('horizontalpodautoscalers'))).toEqual(['video-millrace-api']);
      expect(await replicas()).toEqual([3]);
      const events = await kubectl(['--namespace', namespace, 'get', 'events', '--output', 'json']);
      expect(events).not.toMatch(/Scaled down replica set video-millrace-api-\S+ from 3 to 1/);
    });

    it('migrates a record that came back, as its page says, without an upgrade', async () => {
      const [block = ''] = readRunbooks()
        .filter(({ name }) => name === 'restore-drill')
        .flatMap((page) => page.blocks('sh'))
        .filter((text) => text.includes('helm get hooks'));
      // The page speaks of a release called as the chart.
      const script = block.replaceAll(/(instance=|hooks )millrace/g, '$1video').replace('job/', 'job/video-');
      const before = await get('jobs');
      await inNamespace(script);
      const [again, others] = [await get('jobs'), await get('networkpolicies,serviceaccounts')];
      expect(names(again)).toEqual(names(before));
      const replaced = again.filter(
        ({ metadata }) => !before.some((job) => job.metadata.uid === metadata.uid),
      );
      expect(names(replaced)).toEqual(['video-millrace-migrate']);
      expect(replaced[0]?.status).toMatchObject({ succeeded: 1 });
      expect(names(others).filter((name) => name.includes('migrate'))).toEqual([]);
    });

    it('leaves its definitions and every hold when it is uninstalled, and takes them over when it returns', async () => {
      const hold: AnyObject = {
        ...{ apiVersion: 'millrace.dev/v1alpha1', kind: 'VideoHold' },
        metadata: { name: 'kept', namespace },
        spec: { videoId: 'vid_1' },
      };
      await apply([hold]);
      await release('uninstall', 'video', ...waits);
      expect(names(await get('videoholds'))).toEqual(['kept']);
      const left = await get('deployments,services,networkpolicies,pdb,roles,rolebindings,serviceaccounts');
      expect(names(left).filter((name) => name.startsWith('video-'))).toEqual([]);

      await release('install', 'video', chart, ...valuesArguments({ values: 'small' }), ...waits);
      expect(names(await get('videoholds'))).toEqual(['kept']);
      await release('uninstall', 'video', ...waits);
    });
  });
});

interface Item {
  metadata: { name: string; uid?: string; labels?: Record<string, string> };
  spec: { replicas?: number; template: { spec: { containers: { image: string }[] } } };
  status?: object;
}

/** As `kubectl auth can-i --list` says it. */
const operatorMay = [
  'events.events.k8s.io [] [] [create patch]',
  'plans.millrace.dev [] [] [list watch]',
  'plans.millrace.dev/status [] [] [patch]',
  'videoholds.millrace.dev [] [] [list watch patch]',
  'videoholds.millrace.dev/status [] [] [patch]',
];
