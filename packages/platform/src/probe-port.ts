import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/**
 * Opens a TCP port and lets it go again; 0 finds a free one.
 * @returns the port
 * @throws Error of the system, when it is taken
 */
export async function probePort(host: string, port = 0): Promise<number> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  const { port: found } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return found;
}

/**
 * Below what systems give to whoever asks for any port (from 32,768 on Linux, 49,152 elsewhere): between the choice and
 * its use, and while nothing runs, nobody gets it by chance, nor as the own end of a connection.
 */
const quiet = { from: 15_000, to: 32_000 };
const mostTries = 100;

/**
 * A free TCP port that the system gives to nobody by itself, and none of `besides`.
 * @throws Error of the system, when it has none to give
 */
export async function quietPort(host: string, besides: readonly number[] = []): Promise<number> {
  for (let tries = 0; tries < mostTries; tries += 1) {
    const port = randomInt(quiet.from, quiet.to);
    if (!besides.includes(port) && (await isFreePort(host, port))) return port;
  }
  // Whatever keeps all of them from us, the system's own choice works or says it.
  return probePort(host);
}

/** Whether a TCP port can be opened now. */
export const isFreePort = (host: string, port: number): Promise<boolean> =>
  probePort(host, port).then(
    () => true,
    () => false,
  );
