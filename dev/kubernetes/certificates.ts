import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const openssl = promisify(execFile);
const days = '2';

/** Who has a certificate, by the name of its files: a subject as Kubernetes reads it (O is a group, CN a user). */
const clients = {
  admin: '/O=system:masters/CN=admin',
  'controller-manager': '/CN=system:kube-controller-manager',
  scheduler: '/CN=system:kube-scheduler',
  'front-proxy': '/CN=front-proxy',
};

export type CertificateOwner = keyof typeof clients;

/**
 * Makes an authority (`ca`), the API server's certificate for loopback (`server`), one for each client, and the pair of
 * keys that sign service accounts (`accounts.key`, `accounts.pub`), with openssl, as `NAME.crt` and `NAME.key`.
 */
export async function makeCertificates(folder: string): Promise<void> {
  const path = (file: string): string => join(folder, file);
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const selfSigned = ['req', '-x509', ...newKey, '-days', days, '-subj', '/CN=millrace-test-authority'];
  const accounts = async (): Promise<void> => {
    const key = path('accounts.key');
    await openssl('openssl', [
      'genpkey',
      '-algorithm',
      'EC',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-out',
      key,
    ]);
    await openssl('openssl', ['pkey', '-in', key, '-pubout', '-out', path('accounts.pub')]);
  };
  await Promise.all([
    openssl('openssl', [...selfSigned, '-keyout', path('ca.key'), '-out', path('ca.crt')]),
    accounts(),
  ]);

  const issue = async (name: string, subject: string, usage: string): Promise<void> => {
    const [key, request, extensions] = [path(`${name}.key`), path(`${name}.csr`), path(`${name}.ext`)];
    await writeFile(extensions, `keyUsage=critical,digitalSignature\n${usage}\n`);
    await openssl('openssl', ['req', '-new', ...newKey, '-subj', subject, '-keyout', key, '-out', request]);
    await openssl('openssl', [
      ...['x509', '-req', '-in', request, '-CA', path('ca.crt'), '-CAkey', path('ca.key'), '-days', days],
      // Made at the same time: a common file of serial numbers would be written by all.
      ...['-set_serial', `0x${Buffer.from(name).toString('hex')}`, '-extfile', extensions],
      ...['-out', path(`${name}.crt`)],
    ]);
  };
  const names = ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'];
  const addresses = ['IP:127.0.0.1', 'IP:10.0.0.1', ...names.map((name) => `DNS:${name}`)].join(',');
  await Promise.all([
    issue('server', '/CN=kube-apiserver', `extendedKeyUsage=serverAuth\nsubjectAltName=${addresses}`),
    ...Object.entries(clients).map(([name, subject]) => issue(name, subject, 'extendedKeyUsage=clientAuth')),
  ]);
}

/** A kubeconfig (JSON is YAML) with the certificate of one of them. */
export function kubeconfigOf(owner: CertificateOwner, server: string, folder: string): string {
  const path = (file: string): string => join(folder, file);
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'millrace', cluster: { server, 'certificate-authority': path('ca.crt') } }],
    users: [
      {
        name: owner,
        user: { 'client-certificate': path(`${owner}.crt`), 'client-key': path(`${owner}.key`) },
      },
    ],
    contexts: [{ name: 'millrace', context: { cluster: 'millrace', user: owner } }],
    'current-context': 'millrace',
  });
}
