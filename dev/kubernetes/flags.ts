import { join } from 'node:path';

/** What the servers are started with. All listen on loopback alone, and keep their certificates in one folder. */

interface Place {
  host: string;
  port: number;
}

export function etcdArgs({
  data,
  host,
  port,
  peerPort,
}: Place & { data: string; peerPort: number }): string[] {
  const [own, peer] = [`http://${host}:${port}`, `http://${host}:${peerPort}`];
  return [
    ...['--name', 'only', '--data-dir', data, '--log-level', 'warn'],
    ...['--listen-client-urls', own, '--advertise-client-urls', own],
    ...[
      '--listen-peer-urls',
      peer,
      '--initial-advertise-peer-urls',
      peer,
      '--initial-cluster',
      `only=${peer}`,
    ],
    // Only the API server is ever killed: what it was told to keep survives that without a write to the disk.
    '--unsafe-no-fsync',
  ];
}

const serviceRange = '10.0.0.0/24';

export function apiServerArgs({
  folder,
  host,
  port,
  etcdPort,
}: Place & { folder: string; etcdPort: number }): string[] {
  const path = (file: string): string => join(folder, file);
  return [
    ...['--etcd-servers', `http://${host}:${etcdPort}`, '--service-cluster-ip-range', serviceRange],
    ...['--bind-address', host, '--advertise-address', host, '--secure-port', String(port)],
    // An endpoint on loopback is refused, and nobody looks for one.
    ...['--endpoint-reconciler-type', 'none', '--authorization-mode', 'Node,RBAC', '--allow-privileged'],
    ...['--enable-admission-plugins', 'NodeRestriction', '--client-ca-file', path('ca.crt')],
    ...['--tls-cert-file', path('server.crt'), '--tls-private-key-file', path('server.key')],
    ...['--service-account-issuer', 'https://kubernetes.default.svc'],
    ...['--service-account-key-file', path('accounts.pub')],
    ...['--service-account-signing-key-file', path('accounts.key')],
    // For API services beside it, such as metrics.
    ...['--requestheader-client-ca-file', path('ca.crt'), '--requestheader-allowed-names', 'front-proxy'],
    ...[
      '--requestheader-username-headers',
      'X-Remote-User',
      '--requestheader-group-headers',
      'X-Remote-Group',
    ],
    ...['--requestheader-extra-headers-prefix', 'X-Remote-Extra-'],
    ...['--proxy-client-cert-file', path('front-proxy.crt')],
    ...['--proxy-client-key-file', path('front-proxy.key')],
  ];
}

interface Client extends Place {
  folder: string;
  kubeconfig: string;
}

const clientArgs = ({ folder, host, port, kubeconfig }: Client): string[] => [
  ...[
    '--kubeconfig',
    kubeconfig,
    '--leader-elect=false',
    '--bind-address',
    host,
    '--secure-port',
    String(port),
  ],
  ...['--authentication-kubeconfig', kubeconfig, '--authorization-kubeconfig', kubeconfig],
  ...['--tls-cert-file', join(folder, 'server.crt'), '--tls-private-key-file', join(folder, 'server.key')],
];

export const controllerManagerArgs = (client: Client): string[] => [
  ...clientArgs(client),
  ...['--root-ca-file', join(client.folder, 'ca.crt'), '--use-service-account-credentials'],
  ...['--service-account-private-key-file', join(client.folder, 'accounts.key')],
  ...['--service-cluster-ip-range', serviceRange],
  // Tests do not wait for what is slow for the sake of large clusters.
  ...[
    '--horizontal-pod-autoscaler-sync-period',
    '2s',
    '--horizontal-pod-autoscaler-downscale-stabilization',
    '5s',
  ],
];

export const schedulerArgs = (client: Client): string[] => clientArgs(client);

export const kwokArgs = ({
  host,
  port,
  kubeconfig,
  stages,
}: Omit<Client, 'folder'> & { stages: string }): string[] => [
  ...[
    '--kubeconfig',
    kubeconfig,
    '--config',
    stages,
    '--server-address',
    `${host}:${port}`,
    '--node-ip',
    host,
  ],
  ...['--manage-all-nodes=false', '--manage-nodes-with-annotation-selector', 'kwok.x-k8s.io/node=fake'],
  ...['--cidr', '10.224.0.0/16'],
];
