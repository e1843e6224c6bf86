import { once } from 'node:events';
import { createServer, type RequestListener, type Server as HttpServer } from 'node:http';
import { createSecureServer } from 'node:http2';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import {
  createTestCertificate,
  createTestDnsServer,
  type TestCertificate,
  type TestDnsServer,
} from '@millrace/testing';
import { type EgressConnector, type EgressRequest } from '../egress.ts';
import { createEgress, type EgressOptions } from '../guarded-egress.ts';

/**
 * 127.0.1.0/24 stands for the internet and the rest of loopback for the inside: both can really be connected to,
 * so that a test sees where a connection went.
 */
export const outside = '127.0.1.1';
export const otherOutside = '127.0.1.2';
export const inside = '127.0.0.1';
const isOutside = (address: string): boolean => address.startsWith('127.0.1.');

export interface Listener {
  readonly port: number;
  /** Connections so far. */
  readonly connections: number;
  /** Sockets that are open now. */
  readonly sockets: ReadonlySet<Socket>;
}

export interface Scene {
  readonly dns: TestDnsServer;
  readonly certificate: TestCertificate;
  /** A guard for this scene's DNS, internet and certificate. */
  egress(options?: EgressOptions): EgressConnector;
  /** An https server outside, that would rather speak HTTP/2. */
  serveTls(listener: RequestListener, certificate?: TestCertificate): Promise<Listener>;
  /** The same, with traps on its port inside: whoever connects there was not guarded. */
  serveTlsBesideTraps(listener: RequestListener): Promise<{ receiver: Listener; traps: readonly Listener[] }>;
  serveHttp(listener: RequestListener, host: string): Promise<Listener>;
  serveTcp(onConnection: (socket: Socket) => void, host?: string, port?: number): Promise<Listener>;
  /** Ends the servers and guards of one test. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

/** `hook.example` is outside; its certificate is good for that name. */
export async function createScene(): Promise<Scene> {
  const dns = await createTestDnsServer();
  const certificate = await createTestCertificate('DNS:hook.example', `IP:${outside}`);
  const ends: (() => Promise<unknown>)[] = [];
  dns.set('hook.example', 'A', [outside]);

  async function listen(server: Server | HttpServer, host: string, port = 0): Promise<Listener> {
    const sockets = new Set<Socket>();
    let connections = 0;
    server.on('connection', (socket: Socket) => {
      connections += 1;
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => sockets.delete(socket));
    });
    server.listen(port, host);
    await once(server, 'listening');
    ends.push(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    });
    return {
      port: (server.address() as AddressInfo).port,
      sockets,
      get connections() {
        return connections;
      },
    };
  }

  const serveTls = (listener: RequestListener, { key, cert } = certificate): Promise<Listener> => {
    const server = createSecureServer({ key, cert, allowHTTP1: true });
    return listen(server.on('request', listener as never), outside);
  };
  const trap = (host: string, port: number): Promise<Listener> =>
    listen(
      createTcpServer((socket) => socket.destroy()),
      host,
      port,
    );

  const clear = async (): Promise<void> => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  return {
    dns,
    certificate,
    egress: (options) => {
      const egress = createEgress({
        servers: [dns.address],
        allows: isOutside,
        ca: certificate.cert,
        ...options,
      });
      ends.push(() => egress.close());
      return egress;
    },
    serveTls,
    serveTlsBesideTraps: async (listener) => {
      for (;;) {
        const receiver = await serveTls(listener);
        const made = await Promise.allSettled([inside, '::1'].map((host) => trap(host, receiver.port)));
        const traps = made.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
        // The port was free outside; somebody may have it inside.
        if (traps.length === made.length) return { receiver, traps };
      }
    },
    serveHttp: (listener, host) => listen(createServer(listener), host),
    serveTcp: (onConnection, host = outside, port = 0) => listen(createTcpServer(onConnection), host, port),
    clear,
    close: async () => {
      await clear();
      await dns.close();
    },
  };
}

/** A small JSON POST, as a delivery is. */
export const post = (url: string, over: Partial<EgressRequest> = {}): EgressRequest => ({
  url,
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: Buffer.from('{"a":1}'),
  timeoutMs: 5_000,
  maxResponseBytes: 4_096,
  ...over,
});
