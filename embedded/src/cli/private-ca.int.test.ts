import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestCertificate, createTestDatabase, type TestCertificate } from '@millrace/testing';

const entry = new URL('./main.ts', import.meta.url).pathname;
/** Each command is a process of its own. */
const slowly = 120_000;

/**
 * What every client of PostgreSQL and S3 rests on where their certificates are by a CA that only the operator knows: the
 * chart gives processes `NODE_EXTRA_CA_CERTS` and no other setting. Tried on processes, since Node.js reads it once.
 */
describe('services behind certificates of a private CA', () => {
  let folder: string;
  let ca: string;
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let [databaseUrl, endpoint] = ['', ''];
  const servers: Server[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-ca-'));
    ca = join(folder, 'ca.crt');
    const certificate = await createTestCertificate('DNS:localhost');
    await writeFile(ca, certificate.cert);
    database = await createTestDatabase();
    const url = new URL(database.connectionString);
    const there = { host: url.hostname, port: Number(url.port) };
    url.port = String(await listening(postgresWithTls(there, certificate)));
    url.hostname = 'localhost';
    url.searchParams.set('sslmode', 'verify-full');
    databaseUrl = url.href;
    endpoint = `https://localhost:${await listening(bucketWithTls(certificate))}`;
  });
  afterAll(async () => {
    for (const server of servers) server.close();
    await database.drop();
    await rm(folder, { recursive: true, force: true });
  });

  async function listening(server: Server): Promise<number> {
    servers.push(server);
    server.listen(0, 'localhost');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }

  /** @returns what the command printed, or what it complained of */
  const millrace = (env: Record<string, string>, ...args: string[]): Promise<string> =>
    new Promise((resolve) => {
      // As the chart's Jobs say it.
      const all = { ...process.env, LOG_LEVEL: 'warn', NODE_EXTRA_CA_CERTS: undefined, ...env };
      execFile(process.execPath, [entry, ...args, '--json'], { env: all }, (error, out, complaint) => {
        resolve(error === null ? out : complaint);
      });
    });

  it(
    'migrates over TLS that verifies who answers, and does not wait for one that it does not trust',
    async () => {
      const settings = { DATABASE_URL: databaseUrl };
      const migrate = ['migrate', '--wait', '5'];
      const trusting = await millrace({ ...settings, NODE_EXTRA_CA_CERTS: ca }, ...migrate);
      expect(JSON.parse(trusting)).toMatchObject({ migrated: true });
      const wary = await millrace(settings, ...migrate);
      expect(wary).toMatch(/self-signed certificate/);
      expect(wary).not.toContain('lets the migration wait');
    },
    slowly,
  );

  it(
    'prepares a bucket over TLS that verifies who answers, and none that it does not trust',
    async () => {
      const key = { S3_ACCESS_KEY_ID: 'AKIAEXAMPLE', S3_SECRET_ACCESS_KEY: 'not-a-secret' };
      const settings = { ...key, S3_BUCKET: 'millrace', S3_ENDPOINT: endpoint, S3_PATH_STYLE: 'true' };
      const trusting = await millrace({ ...settings, NODE_EXTRA_CA_CERTS: ca }, 'bucket');
      expect(JSON.parse(trusting)).toMatchObject({ bucket: 'kept' });
      expect(await millrace(settings, 'bucket')).toMatch(/DEPTH_ZERO_SELF_SIGNED_CERT/);
    },
    slowly,
  );
});

/** PostgreSQL's own way into TLS (its manual, “SSL Session Encryption”), in front of a server that speaks none. */
const postgresWithTls = (there: { host: string; port: number }, { cert, key }: TestCertificate): Server =>
  createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write('S');
      const secure = new TLSSocket(socket, { isServer: true, cert, key });
      const other = connect(there);
      for (const each of [secure, other]) each.on('error', () => other.destroy());
      secure.pipe(other).pipe(secure);
    });
  });

/** A bucket that is there, on a server that has no rules of CORS and lifecycle. */
const bucketWithTls = (certificate: TestCertificate): Server =>
  createHttpsServer(certificate, (request, response) => {
    response.statusCode = request.method === 'HEAD' ? 200 : 501;
    response.setHeader('connection', 'close');
    response.end();
  });
