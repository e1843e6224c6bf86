import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A wire to the API server that can be cut, and that can go dead without a word. */
export interface Wire {
  /** Path of a kubeconfig that goes by the wire. */
  readonly kubeconfig: string;
  /** How many connections it carries. */
  readonly connections: number;
  /** Resets every connection; new ones pass. */
  cut(): void;
  /** From now on nothing passes on the connections that there are, and none of them ends; new ones pass. */
  silence(): void;
  close(): Promise<void>;
}

export async function layWire(kubeconfig: string, server: string): Promise<Wire> {
  const target = new URL(server);
  const live = new Set<[Socket, Socket]>();
  const silent = new Set<[Socket, Socket]>();
  const listener = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ host: target.hostname, port: Number(target.port), allowHalfOpen: true });
    const pair: [Socket, Socket] = [near, far];
    live.add(pair);
    for (const [from, to] of [pair, [far, near] as const]) {
      from.on('data', (bytes) => {
        if (live.has(pair)) to.write(bytes);
      });
      from.on('end', () => {
        if (live.has(pair)) to.end();
      });
      from.on('error', () => to.destroy());
      from.on('close', () => {
        live.delete(pair);
        if (!silent.has(pair)) to.destroy();
      });
    }
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  const own = `${kubeconfig}.${port}`;
  await writeFile(own, (await readFile(kubeconfig, 'utf8')).replace(server, `https://127.0.0.1:${port}`));
  const cut = (): void => {
    for (const sockets of [...live, ...silent]) for (const socket of sockets) socket.resetAndDestroy();
    live.clear();
    silent.clear();
  };
  return {
    kubeconfig: own,
    get connections() {
      return live.size;
    },
    cut,
    silence: () => {
      for (const pair of live) silent.add(pair);
      live.clear();
    },
    close: async () => {
      cut();
      listener.close();
      await once(listener, 'close');
    },
  };
}
