import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Below the ports that systems give to the ends of connections: a client that tries a dead server's port again and
 * again cannot be given that very port for its own end, and keep the server from coming back.
 */
const from = 18_000;
const to = 30_000;
const attempts = 200;

/**
 * Different TCP ports that nobody listens on now.
 * @throws Error of the system, when it has none to give
 */
export async function freePorts(count: number, host: string): Promise<number[]> {
  const servers: Server[] = [];
  try {
    for (let tries = 0; servers.length < count; tries++) {
      const server = createServer().listen(randomInt(from, to), host);
      await once(server, 'listening').then(
        () => servers.push(server),
        (error: unknown) => {
          if (tries > attempts) throw error;
        },
      );
    }
    return servers.map((server) => (server.address() as { port: number }).port);
  } finally {
    await Promise.all(
      servers.map(async (server) => {
        server.close();
        await once(server, 'close');
      }),
    );
  }
}
