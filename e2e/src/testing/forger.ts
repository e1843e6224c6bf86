import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo } from 'node:net';

/** A webhook on its way. */
export interface Posted {
  body: string;
  /** `Svc-Signature`; null without one. */
  signature: string | null;
}

/** Stands before a webhook receiver and changes what passes through. `stop` ends it. */
export async function startForger(
  target: string,
  change: (posted: Posted) => Posted,
): Promise<{ url: string; stop(): Promise<void> }> {
  const pass = async (request: IncomingMessage): Promise<number> => {
    const given = request.headers['svc-signature']?.toString() ?? null;
    const body = Buffer.concat((await request.toArray()) as Buffer[]).toString('utf8');
    const sent = change({ body, signature: given });
    const headers = sent.signature === null ? {} : { 'svc-signature': sent.signature };
    const { status } = await fetch(target, { method: 'POST', headers, body: sent.body });
    return status;
  };
  const server = createServer((request, response) => {
    pass(request).then(
      (status) => response.writeHead(status).end(),
      () => response.destroy(),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
