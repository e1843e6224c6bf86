/** As much of Kubernetes’ objects as the tests of the chart look at. */
export interface AnyObject {
  apiVersion: string;
  kind: string;
  metadata: Metadata & { name: string; namespace?: string };
  spec?: unknown;
  [field: string]: unknown;
}

interface Metadata {
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

export interface EnvVariable {
  name: string;
  value?: string;
  valueFrom?: { secretKeyRef: { name: string; key: string } };
}

interface Probe {
  httpGet: { path: string; port: string };
}

interface Container {
  name: string;
  image: string;
  command?: string[];
  args?: string[];
  env: EnvVariable[];
  ports?: { name: string; containerPort: number }[];
  securityContext?: Record<string, unknown>;
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
  lifecycle?: { preStop?: { sleep?: { seconds: number } } };
  startupProbe?: Probe;
  readinessProbe?: Probe;
  livenessProbe?: Probe;
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[];
}

interface PodTemplate {
  metadata: Metadata;
  spec: {
    serviceAccountName?: string;
    automountServiceAccountToken?: boolean;
    terminationGracePeriodSeconds?: number;
    nodeSelector?: Record<string, string>;
    tolerations?: { value?: string }[];
    topologySpreadConstraints?: { labelSelector: { matchLabels: Record<string, string> } }[];
    securityContext?: Record<string, unknown>;
    containers: Container[];
    initContainers?: Container[];
    volumes?: { name: string; emptyDir?: { sizeLimit?: string }; configMap?: object; secret?: object }[];
  };
}

/** What makes pods. */
export interface Workload extends AnyObject {
  spec: {
    replicas?: number;
    selector?: { matchLabels: Record<string, string> };
    template: PodTemplate;
  };
}

const isWorkload = (object: AnyObject): object is Workload =>
  ['Deployment', 'Job', 'StatefulSet', 'DaemonSet'].includes(object.kind);

export const workloadsOf = (objects: readonly AnyObject[]): Workload[] => objects.filter(isWorkload);

export const ofKind = (objects: readonly AnyObject[], kind: string): AnyObject[] =>
  objects.filter((object) => object.kind === kind);

export function named(objects: readonly AnyObject[], kind: string, name: string): AnyObject {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found;
}

/** The one container of a workload’s pods. */
export function containerOf(workload: Workload): Container {
  const { containers, initContainers = [] } = workload.spec.template.spec;
  const [container] = containers;
  if (container === undefined || containers.length + initContainers.length !== 1)
    throw new Error(`${workload.metadata.name} does not have one container`);
  return container;
}

/** A container’s environment by name: a value, or the Secret’s name and key. */
export const environmentOf = (container: Container): ReadonlyMap<string, EnvVariable> =>
  new Map(container.env.map((variable) => [variable.name, variable]));

export const selects = (
  selector: Record<string, string>,
  labels: Record<string, string> | undefined,
): boolean => Object.entries(selector).every(([key, value]) => labels?.[key] === value);

const units: Readonly<Record<string, number>> = {
  ...{ '': 1, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 },
};

/** A quantity of Kubernetes, such as `1536Mi`, in bytes or whatever it counts. */
export function quantity(text: string | number | undefined): number {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)([a-zA-Z]*)$/.exec(String(text)) ?? [];
  const factor = units[unit];
  if (number === undefined || factor === undefined) throw new Error(`${text} is not a quantity`);
  return Number(number) * factor;
}
