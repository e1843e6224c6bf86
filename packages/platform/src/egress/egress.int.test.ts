import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  createTestCertificate,
  createTestDnsServer,
  type TestCertificate,
  type TestDnsServer,
} from '@millrace/testing';
import { type EgressConnector, type EgressRequest } from './egress.ts';
import { createEgress, type EgressOptions } from './guarded-egress.ts';

let dns: TestDnsServer;
let certificate: TestCertificate;
const cleanUps: (() => Promise<void> | void)[] = [];

beforeAll(async () => {
  dns = await createTestDnsServer();
  certificate = await createTestCertificate('DNS:hook.example');
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});
afterAll(() => dns.close());

/** 127.0.1.0/24 stands for the internet, 127.0.0.0/24 for the inside: both can really be connected to. */
const outside = '127.0.1.1';
const inside = '127.0.0.1';

function egress(options: Partial<EgressOptions> = {}): EgressConnector {
  const made = createEgress({
    servers: [dns.address],
    allows: (address) => address.startsWith('127.0.1.'),
    ca: certificate.cert,
    ...options,
  });
  cleanUps.push(() => made.close());
  return made;
}

async function listen<T extends Server>(server: T, host: string, port = 0): Promise<number> {
  server.listen(port, host);
  await once(server, 'listening');
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  cleanUps.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

const secureServer = (listener: RequestListener): Server =>
  createTlsServer({ key: certificate.key, cert: certificate.cert }, listener);

const post = (url: string, over: Partial<EgressRequest> = {}): EgressRequest => ({
  url,
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: Buffer.from('{"a":1}'),
  timeoutMs: 5_000,
  maxResponseBytes: 4_096,
  ...over,
});

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

describe('an exchange', () => {
  it('sends the body, with the host’s name in TLS and in Host, and gives back status, headers and body', async () => {
    const seen: unknown[] = [];
    const port = await listen(
      secureServer((request, response) => {
        void textOf(request).then((body) => {
          seen.push([request.method, request.url, request.headers.host, body]);
          response.writeHead(201, { 'retry-after': '7' }).end('done');
        });
      }),
      outside,
    );
    dns.set('hook.example', 'A', [outside]);
    const answer = await egress().send(post(`https://hook.example:${port}/in?x=1`));
    expect(answer).toMatchObject({ status: 201, truncated: false, headers: { 'retry-after': '7' } });
    expect(Buffer.from(answer.body).toString()).toBe('done');
    expect(seen).toEqual([['POST', '/in?x=1', `hook.example:${port}`, '{"a":1}']]);
  });
});
void createServer;
void createTcpServer;
void describe;
void inside;
