import { createHmac } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type Video, type WebhookEndpoint } from '@millrace/contract';
import { type Customer } from './customer.ts';
import { type Receiver, type Taken } from './receiver.ts';
import { expectEqual, type Report } from './report.ts';

/** The first attempt follows the event at once; a receiver that fails it hears again after 10 s. */
const deliveryTimeoutMs = 30_000;
const pollMs = 100;

/** A receiver that a customer's project sends its `video.ready` to. */
export interface Webhooks {
  report: Report;
  customer: Customer;
  receiver: Receiver;
  endpoint: WebhookEndpoint;
  /** What the endpoint's deliveries are signed with. */
  secret: string;
  signal: AbortSignal;
}

/** Registers the receiver over the API. @throws DemoFailure */
export async function subscribe(
  report: Report,
  customer: Customer,
  { receiver, signal }: Pick<Webhooks, 'receiver' | 'signal'>,
): Promise<Webhooks> {
  const { endpoint, secret } = await report.check(
    'webhook endpoint',
    () => register(customer, receiver),
    ({ endpoint: { events } }) => `${events.join(', ')} to a receiver on this machine`,
  );
  return { report, customer, receiver, endpoint, secret, signal };
}

/** Makes the receiver an endpoint for `video.ready`, which believes what is signed with its secret. */
export async function register(
  { client, projectId }: Customer,
  receiver: Receiver,
): Promise<{ endpoint: Webhooks['endpoint']; secret: string }> {
  const body = { url: receiver.url, events: ['video.ready' as const] };
  const endpoint = await client.createWebhookEndpoint({ projectId, body });
  if (endpoint.signingSecret === undefined) throw new Error('it came without a signing secret');
  receiver.trust(endpoint.signingSecret);
  return { endpoint, secret: endpoint.signingSecret };
}

/** Unregisters it: nobody listens there any more. */
export const unsubscribe = async ({ customer: { client, projectId }, endpoint }: Webhooks): Promise<void> => {
  await client.deleteWebhookEndpoint({ projectId, endpointId: endpoint.id });
};

/**
 * Waits until the receiver has got a `video.ready` that was not there yet when this was last called, and compares
 * it with what the API says. @throws DemoFailure
 */
export async function checkReadyEvent(
  webhooks: Webhooks,
  { name, videoId }: { name: string; videoId: string },
): Promise<Taken> {
  const { report, customer } = webhooks;
  const startedAt = performance.now();
  return report.check(
    name,
    async () => {
      const taken = await nextTaken(webhooks);
      const { client, projectId } = customer;
      const { event } = taken;
      const sent = videoOf(event);
      expectEqual('the type', event.type, 'video.ready');
      expectEqual('the project', event.projectId, projectId);
      expectEqual('the video', sent.id, videoId);
      const video = await client.getVideo({ projectId, videoId });
      expectEqual('updatedAt', sent.updatedAt, video.updatedAt);
      if (!isDeepStrictEqual(sent, video)) throw new Error('its video is not the one that the API shows');
      return taken;
    },
    ({ event, body }) =>
      `${event.id}, signed over ${body.length} bytes, after ${((performance.now() - startedAt) / 1000).toFixed(1)} s`,
  );
}

interface Forgery {
  body: Buffer;
  signature: string | null;
}

/** What must be refused although it looks like a delivery: each changes one thing of a real one. */
const forgeries: Readonly<Record<string, (taken: Taken, secret: string) => Forgery>> = {
  'another video': ({ event, body, signature }) => ({
    body: Buffer.from(body.toString('utf8').replaceAll(videoOf(event).id, 'vid_0000000000000000000000')),
    signature,
  }),
  'one byte more': ({ body, signature }) => ({ body: Buffer.concat([body, Buffer.from(' ')]), signature }),
  'another time': ({ body, signature }) => ({
    body,
    signature: signature.replace(/t=(\d+)/, (_, t: string) => `t=${Number(t) - 1}`),
  }),
  'no signature': ({ body }) => ({ body, signature: null }),
  // Genuine but for its age, as somebody has it who listened six minutes ago.
  'too old': ({ body }, secret) => ({ body, signature: signed(secret, body, Date.now() / 1000 - 360) }),
};

/** A signature as the contract describes it, made here without the service's code. */
function signed(secret: string, body: Buffer, unixSeconds: number): string {
  const t = Math.floor(unixSeconds);
  return `t=${t},v1=${createHmac('sha256', secret).update(`${t}.`).update(body).digest('hex')}`;
}

/** Sends forged deliveries to the receiver, which must take none of them. @throws DemoFailure */
export async function checkForgeries({ report, receiver, secret }: Webhooks, taken: Taken): Promise<void> {
  await report.check(
    'webhook: forged ones refused',
    async () => {
      for (const [name, forge] of Object.entries(forgeries)) {
        const { body, signature } = forge(taken, secret);
        expectEqual(
          'whether the forgery differs',
          body.equals(taken.body) && signature === taken.signature,
          false,
        );
        expectEqual(`the status of ${name}`, await post(receiver.url, body, signature), 400);
      }
      // The very bytes with their own signature are taken again: it was the forging that was refused.
      expectEqual('the status of the real one', await post(receiver.url, taken.body, taken.signature), 204);
    },
    () => Object.keys(forgeries).join(', '),
  );
}

/** The delivery log must say what the receiver saw. @throws DemoFailure */
export async function checkDeliveryLog(webhooks: Webhooks, { event }: Taken): Promise<void> {
  await webhooks.report.check(
    'webhook: delivery log',
    async () => {
      // The attempt is written down after the receiver has answered.
      const row = await untilThere(webhooks.signal, `no outcome of ${event.id}`, async () => {
        const rows = await deliveryLog(webhooks);
        return rows.find(({ eventId, status }) => eventId === event.id && status !== 'pending') ?? null;
      });
      const { eventType, status, attempts, lastStatus } = row;
      const expected = { eventType: 'video.ready', status: 'delivered', attempts: 1, lastStatus: 204 };
      expectEqual('its row', { eventType, status, attempts, lastStatus }, expected);
      return row;
    },
    ({ status, attempts, lastStatus }) => `${status} at try ${attempts}, answered ${lastStatus ?? 'nothing'}`,
  );
}

const deliveryLog = async ({ customer: { client, projectId }, endpoint }: Webhooks) =>
  (await client.listWebhookDeliveries({ projectId, endpointId: endpoint.id })).data;

/** @throws Error at the first attempt that failed, with the receiver's or the log's words; and after too long */
const nextTaken = (webhooks: Webhooks): Promise<Taken> =>
  untilThere(webhooks.signal, 'no delivery', async () => {
    const { receiver } = webhooks;
    const taken = receiver.next();
    if (taken !== null) return taken;
    const refusal = receiver.refusal();
    if (refusal !== null) throw new Error(`a delivery could not be verified: ${refusal}`);
    const failed = (await deliveryLog(webhooks)).find(({ lastError }) => lastError !== null);
    if (failed !== undefined) throw new Error(`the first attempt failed: ${failed.lastError ?? ''}`);
    return null;
  });

/** Looks again and again until there is something. @throws Error when that takes too long */
async function untilThere<T>(
  signal: AbortSignal,
  missing: string,
  look: () => Promise<T | null>,
): Promise<T> {
  const deadline = performance.now() + deliveryTimeoutMs;
  while (performance.now() < deadline) {
    signal.throwIfAborted();
    const found = await look();
    if (found !== null) return found;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  throw new Error(`${missing} within ${deliveryTimeoutMs / 1000} s`);
}

function videoOf({ data }: Taken['event']): Video {
  if (!('video' in data)) throw new Error('it has no video');
  return data.video;
}

async function post(url: string, body: Buffer, signature: string | null): Promise<number> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(signature === null ? {} : { 'svc-signature': signature }),
    },
    body: new Uint8Array(body),
    signal: AbortSignal.timeout(deliveryTimeoutMs),
  });
  await response.arrayBuffer();
  return response.status;
}
