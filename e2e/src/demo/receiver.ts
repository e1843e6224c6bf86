import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo } from 'node:net';
import { verifyWebhook, type WebhookEvent } from '@millrace/client';

/** A webhook that was verified, with its body as it came. */
export interface Taken {
  event: WebhookEvent;
  /** `Svc-Signature`, as it came. */
  signature: string;
  body: Buffer;
}

/** A customer's webhook receiver, as its server would run one. */
export interface Receiver {
  /** Where it takes POST requests. */
  url: string;
  /** Verifies with this secret from now on; before, everything is refused. */
  trust(signingSecret: string): void;
  /** The next one that verified, each event once; null when there is none yet. */
  next(): Taken | null;
  /** Why the last one that came was refused; null when it was not. */
  refusal(): string | null;
  stop(): Promise<void>;
}

/** An event is a video and a few words. */
const maximumBytes = 256 * 1024;

/**
 * Listens on a free loopback port. A delivery is answered 204 when its signature is right over the very bytes that
 * came, 400 otherwise.
 */
export async function startReceiver(): Promise<Receiver> {
  const path = `/webhooks/${randomBytes(8).toString('hex')}`;
  const known = new Set<string>();
  const waiting: Taken[] = [];
  let secret = '';
  let refusal: string | null = null;
  const take = async (request: IncomingMessage): Promise<number> => {
    if (request.method !== 'POST' || request.url !== path) return 404;
    const body = await read(request);
    try {
      const signature = request.headers['svc-signature']?.toString() ?? '';
      const event = verifyWebhook({ body, signature, secret });
      refusal = null;
      // Delivery is at least once: the same event comes again with the same id.
      if (!known.has(event.id)) waiting.push({ event, signature, body });
      known.add(event.id);
      return 204;
    } catch (error) {
      refusal = error instanceof Error ? error.message : String(error);
      return 400;
    }
  };
  const server = createServer((request, response) => {
    take(request).then(
      (status) => response.writeHead(status).end(),
      () => response.destroy(),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    trust: (signingSecret) => {
      secret = signingSecret;
    },
    next: () => waiting.shift() ?? null,
    refusal: () => refusal,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function read(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maximumBytes) throw new Error('the body is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
