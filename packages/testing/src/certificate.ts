import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface TestCertificate {
  /** PEM; the certificate is its own authority. */
  cert: string;
  key: string;
}

/** A self-signed certificate for these subjects, such as `DNS:a.example` or `IP:127.0.0.1`, made by openssl. */
export async function createTestCertificate(...subjects: readonly string[]): Promise<TestCertificate> {
  const folder = await mkdtemp(join(tmpdir(), 'certificate-'));
  try {
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    await promisify(execFile)('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
      ...['-days', '2', '-subj', '/CN=test', '-addext', `subjectAltName=${subjects.join(',')}`],
      ...['-keyout', key, '-out', cert],
    ]);
    return { key: await readFile(key, 'utf8'), cert: await readFile(cert, 'utf8') };
  } finally {
    await rm(folder, { recursive: true });
  }
}
