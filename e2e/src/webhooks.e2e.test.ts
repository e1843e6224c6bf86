import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { verifyWebhook } from '@millrace/client';
import { waitFor } from '@millrace/testing';
import { type Customer, signUp } from './demo/customer.ts';
import { type StartedStack, startStack } from './demo/stack.ts';

/** A request as it came to the customer's server. */
interface Received {
  eventId: string;
  body: Buffer;
  signature: string;
}

/** Whether it is signed with the secret, as a customer would ask. */
function isSignedWith(secret: string, { body, signature }: Received): boolean {
  try {
    verifyWebhook({ body, signature, secret });
    return true;
  } catch {
    return false;
  }
}

describe('kill -9 while webhooks are delivered', () => {
  let folder: string;
  let stack: StartedStack;
  let customer: Customer;
  let server: Server;
  let url: string;
  let received: Received[];
  let answer: (response: ServerResponse) => void;
  const ok = (response: ServerResponse): void => void response.writeHead(204).end();

  const start = (): Promise<StartedStack> =>
    startStack({ dataDir: join(folder, 'data'), signal: new AbortController().signal });
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-webhooks-'));
    stack = await start();
    customer = await signUp(stack, 'pro');
    server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.once('end', () => {
        const body = Buffer.concat(chunks);
        const eventId = (JSON.parse(body.toString()) as { id: string }).id;
        received.push({ eventId, body, signature: String(request.headers['svc-signature']) });
        answer(response);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?key=customer-key-of-the-url`;
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await stack.stop();
    await rm(folder, { recursive: true, force: true });
  });

  let endpointId: string;
  let secret: string;
  beforeEach(async () => {
    received = [];
    answer = ok;
    const { client, projectId } = customer;
    const created = await client.createWebhookEndpoint({ projectId, body: { url, events: ['video.ready'] } });
    endpointId = created.id;
    secret = created.signingSecret ?? '';
  });
  afterEach(async () => {
    await customer.client.deleteWebhookEndpoint({ projectId: customer.projectId, endpointId });
  });

  async function crash(): Promise<void> {
    await stack.kill(false);
    await stack.stop();
    stack = await start();
  }
  const sendTest = () => customer.client.testWebhookEndpoint({ projectId: customer.projectId, endpointId });
  async function log() {
    const { projectId } = customer;
    return (await customer.client.listWebhookDeliveries({ projectId, endpointId })).data;
  }
  /** The log once everything in it is delivered. */
  const delivered = (count: number) =>
    waitFor(
      async () => {
        const rows = await log();
        return rows.length === count && rows.every((row) => row.status === 'delivered') ? rows : undefined;
      },
      { timeoutMs: 60_000, what: 'the deliveries' },
    );

  it('between events and their attempts: each arrives, and the log has every attempt [WHD-402]', async () => {
    const queued = await Promise.all(Array.from({ length: 20 }, sendTest));
    await crash();
    const rows = await delivered(queued.length);
    for (const { eventId, attempts } of rows) {
      const arrived = received.filter((each) => each.eventId === eventId);
      expect(arrived.length).toBeGreaterThanOrEqual(1);
      expect(attempts).toBeGreaterThanOrEqual(arrived.length);
      expect(arrived.every((each) => isSignedWith(secret, each))).toBe(true);
    }
    expect(new Set(received.map((each) => each.eventId))).toEqual(new Set(rows.map((row) => row.eventId)));
  });

  it('between sending and recording: sent again with the same id, and counted', async () => {
    answer = () => undefined;
    await sendTest();
    await waitFor(() => received.length === 1);
    answer = ok;
    await crash();
    expect(await delivered(1)).toMatchObject([{ attempts: 2, lastStatus: 204 }]);
    expect(received).toHaveLength(2);
    expect(new Set(received.map((each) => each.body.toString())).size).toBe(1);
  });

  it('between two attempts: the count goes on', async () => {
    answer = (response) => void response.writeHead(500).end();
    await sendTest();
    const [row] = await waitFor(async () => {
      const rows = await log();
      return rows[0]?.attempts === 1 ? rows : undefined;
    });
    expect(row).toMatchObject({ lastStatus: 500, status: 'pending' });
    // Its next try comes after ten seconds, which a busy machine may need to start again.
    answer = ok;
    await crash();
    expect(await delivered(1)).toMatchObject([{ id: row?.id, attempts: 2, lastStatus: 204 }]);
  });

  it('during a rotation: asked for again, it holds for all that comes', async () => {
    answer = () => undefined;
    await sendTest();
    await waitFor(() => received.length === 1);
    const { client, projectId } = customer;
    const rotation = client.rotateWebhookSecret({ projectId, endpointId }).then(
      () => 'answered',
      () => 'lost',
    );
    answer = ok;
    await crash();
    expect(await rotation).toBe('lost');
    const rotated = await client.rotateWebhookSecret({ projectId, endpointId });
    const before = received.length;
    await sendTest();
    await delivered(2);
    const later = received.slice(before);
    expect(later.length).toBeGreaterThan(0);
    expect(later.every((each) => isSignedWith(rotated.signingSecret ?? '', each))).toBe(true);
    expect(later.some((each) => isSignedWith(secret, each))).toBe(false);
  });
});
