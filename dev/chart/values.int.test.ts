import { expect, it, jest } from '@jest/globals';
import { missingForClients } from '../kubernetes/clients.ts';
import { installation, readGroups } from '../prometheus/rule-files.ts';
import { describeWith } from '../real-part.ts';
import { containerOf, environmentOf, named, ofKind, type Workload, workloadsOf } from './objects.ts';
import { chart, helm, renderChart } from './render.ts';

jest.setTimeout(120_000);

const pool = {
  ...{ name: 'all', classes: ['standard', 'large'], replicas: 1, maxReplicas: 2, slots: 1 },
  ...{ scratchGiB: 1, gracePeriodSeconds: 60 },
  resources: { requests: { cpu: '1', memory: '1Gi' }, limits: { memory: '1Gi' } },
};

describeWith(missingForClients(), 'the values of the chart', () => {
  it('name what has no default', async () => {
    const rendering = helm(['template', 'video', chart]);
    await expect(rendering).rejects.toThrow('urls/api');
    await expect(rendering).rejects.toThrow('urls/cdn');
    await expect(rendering).rejects.toThrow('objects/bucket');
    await expect(rendering).rejects.toThrow('kafka/brokers');
  });

  it.each([
    ['a value that there is not', 'replicaCount=3', 'replicaCount'],
    ['one of them misspelt', 'cdn.replica=3', 'replica'],
    ['an address without TLS', 'urls.cdn="http://cdn.example.com"', 'urls/cdn'],
    ['an address with a final slash', 'urls.api="https://api.example.com/"', 'urls/api'],
    ['a broker without a port', 'kafka.brokers=["kafka"]', 'kafka/brokers/0'],
    ['no pods', 'api.replicas=0', 'api/replicas'],
    ['two ways to scale encoders', 'encoder.autoscaling.mode="keda,hpa"', 'encoder/autoscaling/mode'],
    ['a hasty scale-down', 'encoder.autoscaling.scaleDownSeconds=60', 'scaleDownSeconds'],
    ['an encoder without memory', 'encoder.pools=[{"name":"a"}]', 'encoder/pools/0'],
    ['pods without a limit of memory', 'webhooks.resources.limits.memory=null', 'limits'],
    ['runbooks that are nowhere', 'monitoring.rules.runbooks="wiki"', 'rules/runbooks'],
    ['a secret as a plain value', 'extraEnv.all.ADMIN_TOKEN="open"', 'ADMIN_TOKEN'],
    ['a Secret that is none of ours', 'secrets.optional=["ROOT_PASSWORD"]', 'secrets/optional/0'],
    ['authorities of two places', 'extraCa={"configMap":"ours","secret":"ours"}', 'extraCa'],
    ['a SASL mechanism that Kafka has not', 'kafka.saslMechanism="magic"', 'kafka/saslMechanism'],
    ['a password of SASL in clear', 'kafka={"secret":"k","saslMechanism":"plain"}', 'kafka/tls/enabled'],
    ['certificates without TLS', 'kafka.tls.ca=true', 'kafka/tls'],
    ['a port that there is not', 'kafka.brokers=["kafka:65536"]', 'kafka/brokers/0'],
    ['a policy that names no ports, and so would allow all', 'networkPolicy.database=null', 'networkPolicy'],
    ['policies that are neither on nor off', 'networkPolicy.enabled=null', 'networkPolicy'],
    ['a budget that forbids every drain', 'podDisruptionBudget.maxUnavailable=0', 'podDisruptionBudget'],
    ['a share that does', 'podDisruptionBudget.encoderMaxUnavailable="0%"', 'podDisruptionBudget'],
    ['names that Kubernetes has not', 'fullnameOverride="My_Name."', 'fullnameOverride'],
    ['labels that selectors go by', 'podLabels={"app.kubernetes.io/component":"x"}', 'podLabels'],
    ['half a synthetic viewer', 'reconciler.probe.videoId="vid_1"', 'reconciler/probe'],
    ['half a gateway', 'internal.gateway.issuer="https://sso.example.com"', 'internal/gateway'],
    ['phones without an account', 'api.phone.provider="twilio"', 'api/phone'],
    ['a database’s password as a plain value', 'extraEnv.cdn={"DATABASE_URL":"postgres://"}', 'DATABASE_URL'],
  ])('refuse %s', async (_what, set, named) => {
    await expect(renderChart({ values: 'small', set: [set] })).rejects.toThrow(named);
  });

  it('refuse encoders that start at none without KEDA', async () => {
    const set = (mode: string): string[] => [
      `encoder.pools=${JSON.stringify([{ ...pool, replicas: 0 }])}`,
      `encoder.autoscaling.mode="${mode}"`,
    ];
    await expect(renderChart({ values: 'small', set: set('none') })).rejects.toThrow('pools/0/replicas');
    await expect(renderChart({ values: 'small', set: set('hpa') })).rejects.toThrow('pools/0/replicas');
    await expect(renderChart({ values: 'small', set: set('keda') })).resolves.not.toEqual([]);
  });

  it.each([['standard'], ['large']])(
    'refuse encoders of the class %s alone: what is of the other would wait for good',
    async (taken) => {
      const other = taken === 'large' ? 'standard' : 'large';
      const pools = (...classes: string[]): string[] => [
        `encoder.pools=${JSON.stringify(classes.map((name) => ({ ...pool, name, classes: [name] })))}`,
      ];
      const rendering = renderChart({ values: 'small', set: pools(taken) });
      await expect(rendering).rejects.toThrow(`none takes the class ${other}`);
      await expect(renderChart({ values: 'small', set: pools(taken, other) })).resolves.not.toEqual([]);
    },
  );

  it('refuse SASL without a Secret that has the name and password', async () => {
    const set = ['kafka.saslMechanism="scram-sha-512"'];
    await expect(renderChart({ values: 'small', set })).rejects.toThrow('kafka.secret is needed');
  });

  it('refuse encoders of which more run than may', async () => {
    const set = (mode: string): string[] => [
      `encoder.pools=${JSON.stringify([{ ...pool, replicas: 3 }])}`,
      `encoder.autoscaling.mode="${mode}"`,
    ];
    await expect(renderChart({ values: 'small', set: set('hpa') })).rejects.toThrow('more replicas than');
    await expect(renderChart({ values: 'small', set: set('none') })).resolves.not.toEqual([]);
  });

  it.each([
    ['ConfigMap', 'configMap', { name: 'ours' }],
    ['Secret', 'secret', { secretName: 'ours' }],
  ] as const)('let every pod trust the authorities of a %s, and change none', async (_kind, field, there) => {
    const set = [`extraCa=${JSON.stringify({ [field]: 'ours', key: 'root.pem' })}`];
    const workloads = workloadsOf(await renderChart({ values: 'small', set }));
    expect(workloads.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['Deployment', 'Job']));
    for (const workload of workloads) {
      const container = containerOf(workload);
      const mount = container.volumeMounts?.find(({ name }) => name === 'extra-ca');
      expect(mount?.readOnly).toBe(true);
      expect(workload.spec.template.spec.volumes).toContainEqual({
        name: 'extra-ca',
        [field]: { ...there, items: [{ key: 'root.pem', path: 'ca.crt' }] },
      });
      const file = environmentOf(container).get('NODE_EXTRA_CA_CERTS')?.value;
      expect(file).toBe(`${mount?.mountPath ?? ''}/ca.crt`);
    }
  });

  it('let KEDA ask the record past the pooler, where there is a way', async () => {
    const key = async (...set: string[]): Promise<unknown> => {
      const objects = await renderChart({ values: 'keda', set });
      return named(objects, 'TriggerAuthentication', 'video-millrace-encoder').spec;
    };
    const reads = (name: string): unknown => ({
      secretTargetRef: [{ parameter: 'connection', name: 'millrace-database', key: name }],
    });
    expect(await key()).toEqual(reads('DATABASE_URL'));
    expect(await key('database.direct=true')).toEqual(reads('DATABASE_DIRECT_URL'));
    const called = 'secrets.keyNames={"DATABASE_DIRECT_URL":"direct"}';
    expect(await key('database.direct=true', called)).toEqual(reads('direct'));
  });

  it('keep every name within 63 characters, however long the release’s', async () => {
    const pools = ['encoder.pools[0].name="twelve-chars"'];
    const objects = await renderChart({ values: 'large', set: pools, release: 'r'.repeat(53) });
    for (const { metadata } of objects) expect(metadata.name.length).toBeLessThanOrEqual(63);
    const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(names).size).toBe(names.length);
  });

  it('reach the pods', async () => {
    const set = ['extraEnv.all.OTEL_SDK_DISABLED="true"', 'extraEnv.encoder={"ENCODER_THREADS":"3"}'];
    const objects = await renderChart({ values: 'small', set });
    const env = (name: string) => environmentOf(containerOf(named(objects, 'Deployment', name) as Workload));
    expect(env('video-millrace-encoder-standard').get('ENCODER_THREADS')?.value).toBe('3');
    expect(env('video-millrace-encoder-standard').get('OTEL_SDK_DISABLED')?.value).toBe('true');
    expect(env('video-millrace-api').get('ENCODER_THREADS')).toBeUndefined();
    expect(env('video-millrace-api').get('OTEL_SDK_DISABLED')?.value).toBe('true');
  });

  it('place a pool of encoders elsewhere than the others', async () => {
    const objects = await renderChart({ values: 'large' });
    const placed = (name: string) => {
      const { nodeSelector, tolerations } = (named(objects, 'Deployment', name) as Workload).spec.template
        .spec;
      return { nodeSelector, tolerations: tolerations?.map(({ value }) => value) };
    };
    const others = { nodeSelector: { 'kubernetes.io/os': 'linux' }, tolerations: ['video'] };
    expect(placed('video-millrace-encoder-standard')).toEqual(others);
    expect(placed('video-millrace-api')).toEqual(others);
    expect(placed('video-millrace-encoder-large')).toEqual({
      nodeSelector: { 'node.kubernetes.io/instance-type': 'm7i.8xlarge' },
      tolerations: ['encoding'],
    });
  });

  it('keep the addresses of clients, whose requests are counted by them, behind a load balancer', async () => {
    const objects = await renderChart({ values: 'large' });
    const spec = (name: string) => named(objects, 'Service', name).spec;
    expect(spec('video-millrace-cdn')).toMatchObject({
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
    });
    expect(spec('video-millrace-api')).not.toHaveProperty('externalTrafficPolicy');
  });

  it('take images from the registry that is named, and from nowhere else', async () => {
    const images = async (set: string[]): Promise<Set<string>> => {
      const workloads = workloadsOf(await renderChart({ values: 'small', set }));
      return new Set(workloads.map((workload) => containerOf(workload).image));
    };
    const services = ['api', 'cdn', 'encoder', 'reconciler', 'webhooks'];
    expect([...(await images([]))].sort()).toEqual(services.map((name) => `millrace/${name}:0.1.0`));
    const set = ['image={"registry":"registry.example.com","repository":"a/b","tag":"2"}'];
    expect([...(await images(set))].sort()).toEqual(
      services.map((name) => `registry.example.com/a/b/${name}:2`),
    );
  });

  it('give every pod, those of jobs too, the annotations and labels that are for every pod', async () => {
    const set = ['podAnnotations={"mesh":"none"}', 'podLabels={"team":"video"}'];
    const workloads = workloadsOf(await renderChart({ values: 'small', set }));
    for (const { spec } of workloads)
      expect(spec.template.metadata).toMatchObject({
        annotations: { mesh: 'none' },
        labels: { team: 'video' },
      });
  });

  it('leave out what is switched off', async () => {
    const set = [
      'networkPolicy.enabled=false',
      'crds.install=false',
      'kafka.createTopics=false',
      'objects.prepareBucket=false',
      'reconciler.operator.enabled=false',
    ];
    const objects = await renderChart({ values: 'small', set });
    for (const kind of ['NetworkPolicy', 'CustomResourceDefinition', 'Role', 'RoleBinding'])
      expect(ofKind(objects, kind)).toEqual([]);
    expect(ofKind(objects, 'Job').map(({ metadata }) => metadata.name)).toEqual(['video-millrace-migrate']);
    const reconciler = named(objects, 'Deployment', 'video-millrace-reconciler') as Workload;
    expect(reconciler.spec.template.spec.automountServiceAccountToken).toBe(false);
    expect(environmentOf(containerOf(reconciler)).has('KUBERNETES_NAMESPACE')).toBe(false);
  });

  it('lead from every alert to the pages of whoever runs it', async () => {
    const runbooks = 'https://wiki.example.com/video/runbooks';
    const set = [`monitoring.rules.runbooks="${runbooks}"`];
    const rules = JSON.stringify(ofKind(await renderChart({ values: 'large', set }), 'PrometheusRule'));
    const links = [...rules.matchAll(/"runbook_url":"([^"]*)\/[a-z-]+"/g)].map(([, link = '']) => link);
    expect(new Set(links)).toEqual(new Set([runbooks]));
  });

  it('bring every alert, of this installation, and every dashboard', async () => {
    const objects = await renderChart({ values: 'large' });
    const rules = ofKind(objects, 'PrometheusRule');
    expect(rules.flatMap(({ spec }) => (spec as { groups: unknown[] }).groups)).toEqual(readGroups());
    // Prometheus' operator calls the job after the Service.
    expect(named(objects, 'Service', installation.job).metadata.namespace).toBe(installation.namespace);
    const dashboards = ofKind(objects, 'ConfigMap');
    expect(dashboards.length).toBeGreaterThan(0);
    for (const map of dashboards)
      for (const text of Object.values(map['data'] as Record<string, string>))
        expect(JSON.parse(text)).toHaveProperty('panels');
  });
});
