import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';

/** Receivers of webhooks on this machine, for services that may send there (`--dev`). */
export interface Receivers {
  /** Answers at once. */
  url: string;
  /** Takes nearly as long as a receiver may. */
  slowUrl: string;
  /** Nobody listens there. */
  deadUrl: string;
  stop(): Promise<void>;
}

/** A receiver has ten seconds. */
const slowMs = 9_000;

export async function startReceivers(): Promise<Receivers> {
  const waiting = new Set<NodeJS.Timeout>();
  const well = await listen((request, response) => {
    request.resume().once('end', () => response.writeHead(204).end());
  });
  const slow = await listen((request, response) => {
    request.resume();
    const timer = setTimeout(() => {
      waiting.delete(timer);
      response.writeHead(204).end();
    }, slowMs);
    waiting.add(timer);
  });
  const dead = await listen(() => undefined);
  const deadUrl = urlOf(dead);
  await close(dead);
  return {
    ...{ url: urlOf(well), slowUrl: urlOf(slow), deadUrl },
    stop: async () => {
      for (const timer of waiting) clearTimeout(timer);
      await Promise.all([close(well), close(slow)]);
    },
  };
}

async function listen(answer: RequestListener): Promise<Server> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

const urlOf = (server: Server): string =>
  `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`;

async function close(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}
