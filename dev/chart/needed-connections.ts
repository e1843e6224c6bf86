import { isIP } from 'node:net';
import { exampleEnvironment } from './example-secrets.ts';
import { type Connection, type Party } from './network-policy.ts';
import { type AnyObject, containerOf, ofKind, selects, type Workload, workloadsOf } from './objects.ts';

/** Where a pod has to get through to, as its settings say it. */
export interface Target {
  /** `host:port/protocol`, for people. */
  name: string;
  /** Every pod or address that it may mean. */
  to: Party[];
  port: number;
  protocol: 'TCP' | 'UDP';
}

type Environment = Readonly<Record<string, string | undefined>>;
interface Address {
  host: string;
  port: number;
  protocols?: Target['protocol'][];
}

/** An address that nobody inside has. */
export const somewhere = '198.51.100.1';
const anyNameServer: Address = { host: somewhere, port: 53, protocols: ['UDP', 'TCP'] };

const byUrl = (url: string, port?: number): Address => {
  const { hostname, port: told, protocol } = new URL(url);
  return { host: hostname, port: Number(told) || (port ?? (protocol === 'http:' ? 80 : 443)) };
};
const byPair = (pair: string): Address => {
  const [, host = '', port] = /^(.*):(\d+)$/.exec(pair) ?? [];
  return { host, port: Number(port) };
};
const web = (host: string) => (): Address[] => [{ host, port: 443 }];

/** What a setting makes its process call. */
const called: Readonly<Record<string, (value: string, env: Environment) => Address[]>> = {
  DATABASE_URL: (url) => [byUrl(url, 5432)],
  DATABASE_DIRECT_URL: (url) => [byUrl(url, 5432)],
  KAFKA_BROKERS: (brokers) => brokers.split(',').map(byPair),
  S3_BUCKET: (_, { S3_ENDPOINT: endpoint = 'https://s3.amazonaws.com' }) => [byUrl(endpoint)],
  API_INTERNAL_URL: (url) => [byUrl(url)],
  OTEL_EXPORTER_OTLP_ENDPOINT: (url) => [byUrl(url)],
  ADMIN_JWKS_URL: (url) => [byUrl(url)],
  DNS_SERVERS: (servers) =>
    servers.split(',').map((server) => ({ ...byPair(server), protocols: ['UDP', 'TCP'] })),
  SSO_GOOGLE_CLIENT_ID: web('accounts.google.com'),
  SSO_MICROSOFT_CLIENT_ID: web('login.microsoftonline.com'),
  TWILIO_ACCOUNT_SID: web('api.twilio.com'),
  PROBE_VIDEO_ID: (_, { CDN_URL: url = '' }) => [byUrl(url)],
  // By its Service, and where that leads to.
  KUBERNETES_NAMESPACE: () => [443, 6443].map((port) => ({ host: 'kubernetes.default.svc', port })),
};
/** Addresses that are told to others, or compared with what others say. */
const told = new Set([
  ...['API_URL', 'CDN_URL', 'DOCS_URL', 'DASHBOARD_URL', 'ADMIN_JWT_ISSUER'],
  ...['S3_ENDPOINT', 'S3_PUBLIC_ENDPOINT'],
]);
/** Of routes that the internal deployment has, but nobody reaches there. */
const ofCustomers = new Set([
  'SSO_GOOGLE_CLIENT_ID',
  'SSO_MICROSOFT_CLIENT_ID',
  'TWILIO_ACCOUNT_SID',
  'DNS_SERVERS',
]);

export const componentOf = (object: AnyObject): string =>
  object.metadata.labels?.['app.kubernetes.io/component'] ?? '';

/** A workload's pods, as others meet them. */
export const partyOf = (workload: Workload): Exclude<Party, { address: string }> => ({
  namespace: workload.metadata.namespace ?? '',
  labels: workload.spec.template.metadata.labels ?? {},
  ports: Object.fromEntries(
    (containerOf(workload).ports ?? []).map(({ name, containerPort }) => [name, containerPort]),
  ),
});

/**
 * Everything that a workload's pods have to reach.
 * @throws Error at a setting with an address of which nobody said whether it is called
 */
export function neededBy(workload: Workload, objects: readonly AnyObject[]): Target[] {
  const env: Environment = exampleEnvironment(workload);
  const component = componentOf(workload);
  const looksUpZones = ['api', 'reconciler'].includes(component) && env['DNS_SERVERS'] === undefined;
  const addresses = Object.entries(env).flatMap(([name, value = '']) => {
    if (component === 'internal' && ofCustomers.has(name)) return [];
    const calls = called[name];
    if (calls !== undefined) return calls(value, env);
    if (/:\/\/|:\d+$/.test(value) && !told.has(name)) throw new Error(`${name}: is that called?`);
    return [];
  });
  const names: Address = { host: 'kube-dns.kube-system.svc', port: 53, protocols: ['UDP', 'TCP'] };
  return [names, ...(looksUpZones ? [anyNameServer] : []), ...addresses].flatMap((address) =>
    (address.protocols ?? ['TCP']).map((protocol) => targetOf({ ...address, protocol }, workload, objects)),
  );
}

function targetOf(
  { host, port, protocol }: Address & { protocol: Target['protocol'] },
  { metadata: { namespace = '' } }: Workload,
  objects: readonly AnyObject[],
): Target {
  const name = `${host}:${port}/${protocol}`;
  const [, service = '', where = ''] = /^(.+)\.([^.]+)\.svc$/.exec(host) ?? [];
  const own = ofKind(objects, 'Service').find(
    ({ metadata }) => where === namespace && metadata.name === service,
  );
  if (own !== undefined) {
    const { selector, ports } = own.spec as {
      selector: Record<string, string>;
      ports: { port: number; targetPort: string }[];
    };
    const to = workloadsOf(objects)
      .map(partyOf)
      .filter(({ labels }) => selects(selector, labels));
    const targetPort = ports.find((each) => each.port === port)?.targetPort ?? '';
    return { name, to, port: to[0]?.ports[targetPort] ?? NaN, protocol };
  }
  const inside = where !== '' || !host.includes('.');
  const pod = { namespace: where || namespace, labels: { app: service || host }, ports: {} };
  return { name, to: [inside ? pod : { address: isIP(host) ? host : somewhere }], port, protocol };
}

/** The connections to a target. */
export const connectionsTo = ({ to, port, protocol }: Target, from: Party): Connection[] =>
  to.map((party) => ({ from, to: party, port, protocol }));
