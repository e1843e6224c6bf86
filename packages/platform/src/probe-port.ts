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
