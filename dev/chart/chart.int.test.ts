import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { describeWith } from '../real-part.ts';
import { missingForClients } from '../kubernetes/clients.ts';
import {
  type AnyObject,
  containerOf,
  environmentOf,
  named,
  ofKind,
  quantity,
  selects,
  type Workload,
  workloadsOf,
} from './objects.ts';
import { chart, helm, renderChart, valuesArguments, valuesFiles } from './render.ts';

jest.setTimeout(120_000);

const component = (object: AnyObject): string =>
  object.metadata.labels?.['app.kubernetes.io/component'] ?? '';
const deploymentsOf = (objects: readonly AnyObject[]): Workload[] =>
  workloadsOf(objects).filter(({ kind }) => kind === 'Deployment');

describeWith(missingForClients(), 'the chart', () => {
  it('is tried small, large, and with both ways to scale encoders', () => {
    expect([...valuesFiles.keys()].sort()).toEqual(['hpa', 'keda', 'large', 'small']);
  });

  describe.each([...valuesFiles.keys()])('with the values %s', (values) => {
    let objects: AnyObject[];
    beforeAll(async () => {
      objects = await renderChart({ values });
    });

    it('passes helm’s own checks', async () => {
      await helm(['lint', '--strict', '--kube-version', '1.37.2', chart, ...valuesArguments({ values })]);
    });

    it('has a deployment for each service, and the internal routes as one of their own', () => {
      const components = new Set(deploymentsOf(objects).map(component));
      const others = ['api', 'internal', 'cdn', 'webhooks', 'reconciler', 'encoder-standard'];
      for (const each of others) expect(components).toContain(each);
    });

    it('confines every pod as the restricted profile asks, its root read-only', () => {
      for (const { metadata, spec } of workloadsOf(objects)) {
        const where = metadata.name;
        expect({ where, pod: spec.template.spec.securityContext }).toMatchObject({
          where,
          pod: { runAsNonRoot: true, runAsUser: 10_001, seccompProfile: { type: 'RuntimeDefault' } },
        });
        for (const { securityContext } of spec.template.spec.containers) {
          expect({ where, securityContext }).toEqual({
            where,
            securityContext: {
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ['ALL'] },
            },
          });
        }
        for (const volume of spec.template.spec.volumes ?? []) {
          if (volume.name === 'extra-ca') continue;
          expect(Object.keys(volume).sort()).toEqual(['emptyDir', 'name']);
          expect(volume.emptyDir?.sizeLimit).toBeDefined();
        }
      }
    });

    it('says of every container what it needs, and how much memory it may have', () => {
      for (const workload of workloadsOf(objects)) {
        const { requests, limits } = containerOf(workload).resources ?? {};
        expect(quantity(requests?.['cpu'])).toBeGreaterThan(0);
        expect(quantity(limits?.['memory'])).toBeGreaterThanOrEqual(quantity(requests?.['memory']));
      }
    });

    it('asks every service on its operations port how it is, and starts none anew that waits for what is away', () => {
      for (const deployment of deploymentsOf(objects)) {
        const { startupProbe, readinessProbe, livenessProbe, ports, env } = containerOf(deployment);
        const asked = [startupProbe, readinessProbe, livenessProbe].map((probe) => probe?.httpGet);
        expect(asked).toEqual([
          { path: '/health', port: 'ops' },
          { path: '/ready', port: 'ops' },
          { path: '/health', port: 'ops' },
        ]);
        const port = ports?.find(({ name }) => name === 'ops')?.containerPort;
        const told = env.find(({ name }) => name === 'OPS_PORT')?.value;
        expect(String(port)).toBe(told);
      }
    });

    it('gives secrets by reference alone', () => {
      expect(ofKind(objects, 'Secret')).toEqual([]);
      const secret = /SECRET|TOKEN|KEY|PASSWORD|DATABASE_.*URL|KAFKA_TLS_C|SASL_USERNAME/;
      for (const workload of workloadsOf(objects)) {
        for (const variable of containerOf(workload).env) {
          if (secret.test(variable.name)) expect(variable).not.toHaveProperty('value');
          else expect(variable).not.toHaveProperty('valueFrom');
        }
      }
    });

    it('keeps the database and the webhooks’ keys from the CDN, and every key from the encoders', () => {
      const names = (name: string): string[] =>
        deploymentsOf(objects)
          .filter((deployment) => component(deployment).startsWith(name))
          .flatMap((deployment) => [...environmentOf(containerOf(deployment)).keys()]);
      expect(names('cdn')).not.toContain('DATABASE_URL');
      expect(names('cdn')).not.toContain('WEBHOOK_SECRET_KEYS');
      expect(names('encoder').filter((name) => name.endsWith('_KEYS'))).toEqual([]);
      expect(names('api')).not.toContain('ADMIN_TOKEN');
    });

    it('has for each deployment one budget of disruptions and one network policy, and a policy for each job', () => {
      const podsOf = (object: AnyObject): Workload[] => {
        const { podSelector, selector } = object.spec as Record<
          string,
          { matchLabels: Record<string, string> }
        >;
        const { matchLabels } = podSelector ?? selector ?? { matchLabels: {} };
        return workloadsOf(objects).filter(({ spec }) => selects(matchLabels, spec.template.metadata.labels));
      };
      const covered = (kind: string): string[] =>
        ofKind(objects, kind)
          .flatMap(podsOf)
          .map(({ metadata }) => metadata.name)
          .sort();
      const namesOf = (workloads: Workload[]): string[] =>
        workloads.map(({ metadata }) => metadata.name).sort();
      expect(covered('PodDisruptionBudget')).toEqual(namesOf(deploymentsOf(objects)));
      expect(covered('NetworkPolicy')).toEqual(namesOf(workloadsOf(objects)));
      for (const policy of ofKind(objects, 'NetworkPolicy'))
        expect(policy.spec).toMatchObject({ policyTypes: ['Ingress', 'Egress'] });
    });

    it('never lets a budget forbid a drain for good', () => {
      for (const { spec } of ofKind(objects, 'PodDisruptionBudget')) {
        const { maxUnavailable } = spec as { maxUnavailable: number | string };
        expect(maxUnavailable).not.toBe(0);
        expect(maxUnavailable).not.toBe('0%');
      }
    });

    it('spreads each deployment’s pods over zones and nodes, apart from others’', () => {
      for (const { spec } of deploymentsOf(objects)) {
        const constraints = spec.template.spec.topologySpreadConstraints ?? [];
        expect(constraints).toMatchObject([
          { topologyKey: 'kubernetes.io/hostname' },
          { topologyKey: 'topology.kubernetes.io/zone' },
        ]);
        for (const { labelSelector } of constraints)
          expect(labelSelector.matchLabels).toEqual(spec.selector?.matchLabels);
      }
    });

    it('lets a service stop before it is killed, and encoders hand back before that', () => {
      for (const deployment of deploymentsOf(objects)) {
        const env = environmentOf(containerOf(deployment));
        const grace = 1_000 * (deployment.spec.template.spec.terminationGracePeriodSeconds ?? 30);
        const shutdown = Number(env.get('SHUTDOWN_TIMEOUT_MS')?.value);
        const container = containerOf(deployment);
        // Who is called goes on for a while: those who call hear a moment later that it goes.
        const isCalled = container.ports?.some(({ name }) => name !== 'ops') === true;
        const drain = 1_000 * (container.lifecycle?.preStop?.sleep?.seconds ?? 0);
        expect(drain > 0).toBe(isCalled);
        expect(drain + shutdown).toBeLessThan(grace);
        if (!component(deployment).startsWith('encoder')) continue;
        const handBack = Number(env.get('ENCODER_DRAIN_MS')?.value);
        expect(handBack).toBeGreaterThan(0);
        expect(handBack).toBeLessThan(shutdown);
      }
    });

    it('runs every pod under an account of its own, of which the reconciler’s alone may ask Kubernetes', () => {
      const accounts = workloadsOf(objects).map(({ spec }) => spec.template.spec.serviceAccountName ?? '');
      expect(new Set(accounts).size).toBe(accounts.length);
      for (const name of accounts)
        expect(named(objects, 'ServiceAccount', name)).toMatchObject({ automountServiceAccountToken: false });
      const mounted = workloadsOf(objects).filter(
        ({ spec }) => spec.template.spec.automountServiceAccountToken !== false,
      );
      expect(mounted.map(component)).toEqual(['reconciler']);
      const bound = ofKind(objects, 'RoleBinding').flatMap(({ subjects }) => subjects as { name: string }[]);
      expect(bound.map(({ name }) => name)).toEqual(['video-millrace-reconciler']);
      expect([...ofKind(objects, 'ClusterRole'), ...ofKind(objects, 'ClusterRoleBinding')]).toEqual([]);
    });

    it('leads each service’s name to ports that its pods have', () => {
      for (const { metadata, spec } of ofKind(objects, 'Service')) {
        const { selector, ports } = spec as {
          selector: Record<string, string>;
          ports: { targetPort: string }[];
        };
        const pods = deploymentsOf(objects).filter((each) =>
          selects(selector, each.spec.template.metadata.labels),
        );
        expect({ of: metadata.name, pods: pods.length }).not.toEqual({ of: metadata.name, pods: 0 });
        for (const { targetPort } of ports)
          for (const pod of pods)
            expect(containerOf(pod).ports?.map(({ name }) => name)).toContain(targetPort);
      }
    });

    it('shows customers neither the internal routes nor metrics', () => {
      const shown = (name: string): Record<string, string | undefined> => {
        const env = environmentOf(containerOf(named(objects, 'Deployment', name) as Workload));
        return {
          customers: env.get('API_HOST')?.value,
          internal: env.get('API_INTERNAL_HOST')?.value,
        };
      };
      expect(shown('video-millrace-api')).toEqual({ customers: '0.0.0.0', internal: '127.0.0.1' });
      expect(shown('video-millrace-internal')).toEqual({ customers: '127.0.0.1', internal: '0.0.0.0' });
      for (const name of ['api', 'cdn']) {
        const { ports } = named(objects, 'Service', `video-millrace-${name}`).spec as {
          ports: { targetPort: string }[];
        };
        expect(ports.map(({ targetPort }) => targetPort)).toEqual(['http']);
      }
    });

    it('gives the CDN memory for all that it may keep and send', () => {
      const container = containerOf(named(objects, 'Deployment', 'video-millrace-cdn') as Workload);
      const mebibyte = 2 ** 20;
      const blocks = Number(environmentOf(container).get('CDN_BLOCK_CACHE_BYTES')?.value);
      // What has no setting here: 128 of fetches, 512 of answers, 128 of indexes, 32 of states, twice 32 of tokens.
      const rest = (128 + 512 + 128 + 32 + 64) * mebibyte;
      expect(quantity(container.resources?.limits?.['memory'])).toBeGreaterThan(blocks + rest);
    });

    it('gives encoders as much disk as they think they have, on nodes that have it', () => {
      for (const deployment of deploymentsOf(objects).filter((each) =>
        component(each).startsWith('encoder'),
      )) {
        const container = containerOf(deployment);
        const bytes = Number(environmentOf(container).get('ENCODER_SCRATCH_BYTES')?.value);
        const [volume] = deployment.spec.template.spec.volumes ?? [];
        expect(quantity(volume?.emptyDir?.sizeLimit)).toBeGreaterThan(bytes);
        expect(container.resources?.requests?.['ephemeral-storage']).toBe(volume?.emptyDir?.sizeLimit);
        const folder = environmentOf(container).get('ENCODER_SCRATCH_DIR')?.value;
        expect(folder).toMatch(new RegExp(`^${container.volumeMounts?.[0]?.mountPath ?? '!'}/`));
      }
    });

    it('scales each pool of encoders in one way at most, and down only after ten minutes', () => {
      const scalers = objects.filter(
        ({ kind }) => kind === 'HorizontalPodAutoscaler' || kind === 'ScaledObject',
      );
      const targets = scalers.map(
        ({ spec }) => (spec as { scaleTargetRef: { name: string } }).scaleTargetRef.name,
      );
      expect(new Set(targets).size).toBe(targets.length);
      const scaled = deploymentsOf(objects).filter(({ spec }) => spec.replicas === undefined);
      expect(scaled.map(({ metadata }) => metadata.name).sort()).toEqual(targets.sort());
      for (const scaler of scalers)
        expect(JSON.stringify(scaler.spec)).toContain('"stabilizationWindowSeconds":600');
      const expected = { hpa: ['HorizontalPodAutoscaler'], keda: ['ScaledObject'] }[values] ?? [];
      const ofEncoders = scalers.filter((scaler) => component(scaler).startsWith('encoder'));
      expect(ofEncoders.map(({ kind }) => kind)).toEqual(expected);
    });

    it('prepares schema, topics and bucket before anything else, with what they need', () => {
      const hooks = objects.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] !== undefined);
      const weight = (object: AnyObject): number =>
        Number(object.metadata.annotations?.['helm.sh/hook-weight']);
      const jobs = hooks.filter(({ kind }) => kind === 'Job').sort((a, b) => weight(a) - weight(b));
      const steps = ['migrate', 'topics', 'bucket'];
      expect(jobs.map(component)).toEqual(values === 'large' ? steps.slice(0, 2) : steps);
      for (const hook of hooks) {
        expect(hook.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-install,pre-upgrade' });
        if (hook.kind !== 'Job') expect(weight(hook)).toBeLessThan(weight(jobs[0] ?? hook));
      }
      for (const job of workloadsOf(jobs)) {
        const account = job.spec.template.spec.serviceAccountName ?? '';
        expect(hooks).toContain(named(objects, 'ServiceAccount', account));
        expect(job.spec).toMatchObject({ activeDeadlineSeconds: 1_800 });
      }
    });

    it('keeps its resource definitions, and with them every hold, when it is uninstalled', () => {
      const definitions = ofKind(objects, 'CustomResourceDefinition');
      expect(definitions.map(({ metadata }) => metadata.name).sort()).toEqual([
        'plans.millrace.dev',
        'videoholds.millrace.dev',
      ]);
      for (const { metadata } of definitions)
        expect(metadata.annotations).toMatchObject({ 'helm.sh/resource-policy': 'keep' });
    });

    it('labels everything as its own', () => {
      for (const { metadata } of objects) {
        expect(metadata.labels).toMatchObject({
          'app.kubernetes.io/instance': 'video',
          'app.kubernetes.io/managed-by': 'Helm',
        });
      }
    });
  });
});
