import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import { verifyWebhook, type WebhookEvent } from '@millrace/client';
import { type EventType } from '@millrace/contract';
import { type Customer } from '../demo/customer.ts';
import { type Receipt } from './ledger.ts';

/** The customer's webhook receivers, which write down all that comes. */
export interface Receivers {
  /** Adds an endpoint. One that is `moody` refuses some events when they come for the first time. */
  add(customer: Customer, options: { events: EventType[]; moody: boolean }): Promise<void>;
  readonly receipts: Receipt[];
  stop(): Promise<void>;
}

interface Endpoint {
  id: string;
  secret: string;
  moody: boolean;
}

export async function startReceivers(): Promise<Receivers> {
  const receipts: Receipt[] = [];
  const endpoints = new Map<string, Endpoint>();
  const take = (path: string, signature: string, body: Buffer): number => {
    const endpoint = endpoints.get(path);
    if (endpoint === undefined) return 404;
    const event = JSON.parse(body.toString('utf8')) as WebhookEvent;
    const isFirst = !receipts.some((r) => r.endpointId === endpoint.id && r.eventId === event.id);
    const accepted = !(endpoint.moody && isFirst && isDisliked(event.id));
    const genuine = isGenuine({ body, signature, secret: endpoint.secret });
    receipts.push({
      ...{ endpointId: endpoint.id, eventId: event.id, body: body.toString('utf8'), genuine, accepted },
    });
    return accepted ? 204 : 500;
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
      const signature = request.headers['svc-signature']?.toString() ?? '';
      response.writeHead(take(request.url ?? '', signature, Buffer.concat(chunks))).end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    receipts,
    add: async ({ client, projectId }, { events, moody }) => {
      const path = `/webhooks/${endpoints.size + 1}`;
      const body = { url: `http://127.0.0.1:${port}${path}`, events };
      const { id, signingSecret = '' } = await client.createWebhookEndpoint({ projectId, body });
      endpoints.set(path, { id, secret: signingSecret, moody });
    },
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A quarter of all events. */
const isDisliked = (eventId: string): boolean =>
  createHash('sha256').update(eventId).digest().readUInt8() < 64;

function isGenuine(delivery: Parameters<typeof verifyWebhook>[0]): boolean {
  try {
    verifyWebhook(delivery);
    return true;
  } catch {
    return false;
  }
}
