import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo } from 'node:net';
import { createTestCertificate } from '@millrace/testing';

/** A request that the browser made, and what came of it. */
interface Seen {
  host: string;
  path: string;
  status: number;
}

/** What stands on every other host. */
type Site = (path: string) => Promise<{ type: string; body: string } | null>;

/** TLS for every host at one port: services behind names of their own, a test's pages behind all others. */
export interface Front {
  port: number;
  /** SHA-256 of the certificate's key, in base64: what a browser is told to believe. */
  spki: string;
  seen: Seen[];
  close(): Promise<void>;
}

/** @param services where a host's service listens */
export async function startFront(services: Readonly<Record<string, string>>, site: Site): Promise<Front> {
  const { cert, key } = await createTestCertificate('DNS:*.example.net', 'DNS:*.example.com');
  const handler = (incoming: IncomingMessage, response: ServerResponse): void => {
    const { host = '' } = incoming.headers;
    const path = incoming.url ?? '';
    response.once('close', () => front.seen.push({ host, path, status: response.statusCode }));
    const service = services[host];
    if (service === undefined) {
      site(path).then(
        (page) => {
          response.writeHead(page === null ? 404 : 200, { 'Content-Type': page?.type ?? 'text/plain' });
          response.end(page?.body ?? '');
        },
        () => response.writeHead(500).end(),
      );
    } else pass(incoming, response, service);
  };
  const server = createServer({ cert, key }, handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const spkiKey = new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' });
  const front: Front = {
    port: (server.address() as AddressInfo).port,
    spki: createHash('sha256').update(spkiKey).digest('base64'),
    seen: [],
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return front;
}

/** Hands a request on as it came, and the answer back. */
function pass(incoming: IncomingMessage, response: ServerResponse, url: string): void {
  const { hostname, port } = new URL(url);
  const { method, url: path, rawHeaders: headers } = incoming;
  const outgoing = request({ hostname, port, method, path, headers, agent: false }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
    answer.pipe(response);
  });
  response.once('close', () => outgoing.destroy());
  outgoing.once('error', () => response.destroy());
  incoming.pipe(outgoing);
}
