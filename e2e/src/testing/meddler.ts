import { once } from 'node:events';
import { createServer, type OutgoingHttpHeaders } from 'node:http';
import { type AddressInfo } from 'node:net';

export interface Answer {
  /** Path and query that were asked for. */
  path: string;
  status: number;
  headers: Record<string, string | undefined>;
  body: Buffer;
}

/** Makes something else of an answer. */
export type Meddling = (answer: Answer) => Answer;

/** A proxy that meddles with what comes back. `stop` ends it. */
export async function startMeddler(
  target: string,
  meddle: Meddling,
): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    const headers = Object.fromEntries(
      ['origin', 'referer', 'range'].flatMap((name) => {
        const value = request.headers[name];
        return typeof value === 'string' ? [[name, value]] : [];
      }),
    );
    fetch(target + path, { headers })
      .then(async (answer) => {
        const body = Buffer.from(await answer.arrayBuffer());
        const given = { path, status: answer.status, headers: Object.fromEntries(answer.headers), body };
        const sent = meddle(given);
        response.writeHead(sent.status, present(sent.headers)).end(sent.body);
      })
      .catch(() => response.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Without those that were taken away, and the length, which is the new body's. */
const present = (headers: Answer['headers']): OutgoingHttpHeaders =>
  Object.fromEntries(
    Object.entries(headers).filter(([name, value]) => value !== undefined && name !== 'content-length'),
  );
