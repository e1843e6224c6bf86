import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A line to a server that a test can cut, block and mend. */
export interface CuttableProxy {
  /** The same address as the original's, through the line. */
  url: string;
  /** Connections that are open now. */
  readonly connections: number;
  /** Breaks every connection and refuses new ones. */
  cut(): void;
  /**
   * Lets nothing through any more, and nobody notices: connections stay, new ones are taken. With `answers` only the
   * server's answers are held back.
   */
  block(what?: 'all' | 'answers'): void;
  /** Takes connections again. What was blocked stays blocked, on the connections that were. */
  mend(): void;
  close(): Promise<void>;
}

/** Listens on a free loopback port and carries bytes to and from where `target` points. */
export async function createCuttableProxy(target: string): Promise<CuttableProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let whole = true;
  let blocked: 'all' | 'answers' | undefined;
  const block = (near: Socket, far: Socket): void => {
    if (blocked === 'all') near.unpipe(far);
    if (blocked !== undefined) far.unpipe(near);
  };
  const pairs = new Set<[near: Socket, far: Socket]>();
  const server = createServer((near) => {
    if (!whole) {
      near.destroy();
      return;
    }
    const far = connect(Number(port), hostname);
    const pair: [Socket, Socket] = [near, far];
    pairs.add(pair);
    for (const [from, to] of [pair, [far, near]] as [Socket, Socket][]) {
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        pairs.delete(pair);
        to.destroy();
      });
      from.pipe(to);
      sockets.add(from);
    }
    block(near, far);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(target);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const cut = (): void => {
    whole = false;
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: url.href,
    get connections() {
      return sockets.size / 2;
    },
    cut,
    block: (what = 'all') => {
      blocked = what;
      for (const [near, far] of pairs) block(near, far);
    },
    mend: () => {
      whole = true;
      blocked = undefined;
    },
    close: async () => {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
