import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { webhookKey } from '@millrace/domain';
import { createEgress, type EgressConnector } from '@millrace/platform';
import { createManualClock, createTestDnsServer, type TestDnsServer } from '@millrace/testing';
import { type Attempt, createSender, type Outcome } from './sender.ts';

const secret = 'whsec_0123456789abcdef';
const body = Buffer.from(JSON.stringify({ id: 'evt_1', data: { title: 'a/"é" 日本 🎬' } }));
const clock = createManualClock(new Date('2030-01-01T00:00:00.999Z'));
const ends: (() => Promise<unknown>)[] = [];
let egress: EgressConnector;
let dns: TestDnsServer;

beforeAll(async () => {
  dns = await createTestDnsServer();
  egress = createEgress({ loopback: true, servers: [dns.address] });
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});
afterAll(() => Promise.all([egress.close(), dns.close()]));

/** A receiver on loopback; returns its URL. */
async function receive(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}

const send = (url: string, over: Partial<Attempt> = {}, timeoutMs = 5_000): Promise<Outcome> =>
  createSender({ egress, clock, timeoutMs }).send({
    url,
    key: webhookKey(secret),
    body,
    redelivery: false,
    ...over,
  });

const failed = (status: number | null, error: string, retryAfterMs: number | null = null): Outcome => ({
  delivered: false,
  status,
  error,
  retryAfterMs,
});

describe('a delivery', () => {
  interface Received {
    method: string | undefined;
    headers: IncomingHttpHeaders;
    body: Buffer;
  }
  /** A receiver that keeps what it gets, and its URL. */
  async function keep(): Promise<{ url: string; received: Received[] }> {
    const received: Received[] = [];
    const url = await receive((request, response) => {
      const { method, headers } = request;
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        received.push({ method, headers, body: Buffer.concat(chunks) });
        response.writeHead(204).end();
      });
    });
    return { url, received };
  }

  it('is signed with the whole secret, over the time of the attempt and the raw bytes [SIG-001, SIG-002, SIG-003]', async () => {
    const { url, received } = await keep();
    for (const t of [1_893_456_000, 1_893_456_010]) {
      expect(await send(url)).toEqual({ delivered: true, status: 204, error: null, retryAfterMs: null });
      const { headers, body: bytes } = received.shift() ?? { body: body.subarray(0, 0) };
      const v1 = createHmac('sha256', Buffer.from(secret, 'utf8'))
        .update(`${t}.`)
        .update(bytes)
        .digest('hex');
      expect(headers?.['svc-signature']).toBe(`t=${t},v1=${v1}`);
      await clock.advance(10_000);
    }
  });

  it('is a POST of the same JSON on each try, dated and signed anew, and says when it was asked for again [EVT-012, WHD-403, WHD-404]', async () => {
    const { url, received } = await keep();
    await send(url);
    await clock.advance(1_000);
    await send(url, { redelivery: true });
    const [first, second] = received;
    const [t1 = 0, t2 = 0] = received.map(({ headers }) =>
      Number(/^t=(\d+),/.exec(String(headers['svc-signature']))?.[1]),
    );
    expect(t2).toBe(t1 + 1);
    expect(new Set(received.map(({ headers }) => String(headers['svc-signature']).slice(-64))).size).toBe(2);
    for (const one of received) {
      expect(one.method).toBe('POST');
      expect(one.body.equals(body)).toBe(true);
      expect(one.headers).toMatchObject({
        'content-type': 'application/json',
        'content-length': String(body.length),
        'user-agent': 'Millrace-Webhooks/1.0',
      });
    }
    expect([first?.headers['svc-redelivery'], second?.headers['svc-redelivery']]).toEqual([
      undefined,
      'true',
    ]);
  });

  it.each([200, 201, 202, 204, 299])('is delivered with %i [WHD-101]', async (status) => {
    const url = await receive((_request, response) => response.writeHead(status).end());
    expect(await send(url)).toMatchObject({ delivered: true, status, error: null });
  });

  it.each([400, 404, 410, 500, 502, 599])('is not delivered with %i [WHD-408]', async (status) => {
    const url = await receive((_request, response) =>
      response.writeHead(status, { 'retry-after': '60' }).end(),
    );
    expect(await send(url)).toEqual(failed(status, `answered ${status}`));
  });

  it.each([429, 503])('with %i waits as long as it was asked to', async (status) => {
    const answers = ['90', 'Tue, 01 Jan 2030 01:00:00 GMT', 'later'];
    const url = await receive((_request, response) =>
      response.writeHead(status, { 'retry-after': answers.shift() }).end(),
    );
    const now = clock.now().getTime();
    expect(await send(url)).toEqual(failed(status, `answered ${status}`, 90_000));
    expect(await send(url)).toEqual(
      failed(status, `answered ${status}`, Date.parse('2030-01-01T01:00:00Z') - now),
    );
    expect(await send(url)).toEqual(failed(status, `answered ${status}`));
  });

  it.each([301, 302, 303, 307, 308])('is not sent on with %i [WHD-411]', async (status) => {
    let inside = 0;
    const trap = await receive((_request, response) => {
      inside += 1;
      response.end();
    });
    const url = await receive((_request, response) => response.writeHead(status, { location: trap }).end());
    expect(await send(url)).toEqual(failed(status, `answered ${status}; redirects are not followed`));
    expect(inside).toBe(0);
  });

  it('is delivered though the connection kept from the last one has been closed', async () => {
    const used = new WeakSet<object>();
    const url = await receive(({ socket }, response) => {
      if (used.has(socket)) return void socket.destroy();
      used.add(socket);
      response.end();
    });
    expect(await send(url)).toMatchObject({ delivered: true });
    expect(await send(url)).toMatchObject({ delivered: true });
  });

  it('is delivered though the answer is far too long [WHD-410]', async () => {
    let sent = 0;
    const url = await receive((request, response) => {
      request.socket.once('close', () => (sent = request.socket.bytesWritten));
      response.writeHead(200, { 'content-length': String(200 * 1024 * 1024) });
      const chunk = Buffer.alloc(1024 * 1024);
      const pour = (): void => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', pour);
      pour();
    });
    expect(await send(url)).toMatchObject({ delivered: true, status: 200 });
    expect(sent).toBeLessThan(16 * 1024 * 1024);
  });
});

describe('without a whole answer in time', () => {
  const slow = 'no whole answer within 0.2 s';

  it('a silent receiver failed [WHD-401]', async () => {
    const url = await receive(() => undefined);
    expect(await send(url, {}, 200)).toEqual(failed(null, slow));
  });

  it('a dripping one failed with its status [WHD-401]', async () => {
    let drip: NodeJS.Timeout | undefined;
    const url = await receive((_request, response) => {
      response.writeHead(200).write('x');
      drip = setInterval(() => response.write('x'), 20);
    });
    expect(await send(url, {}, 200).finally(() => clearInterval(drip))).toEqual(failed(200, slow));
  });

  it('a receiver that hangs up failed', async () => {
    const url = await receive((request) => request.socket.destroy());
    expect(await send(url)).toEqual(failed(null, 'the connection ended before the answer did'));
  });
});

describe('what cannot be sent', () => {
  it.each([
    ['https://10.0.0.1/', 'the host has an address that is not public'],
    ['https://[::ffff:169.254.169.254]/', 'the host has an address that is not public'],
    ['http://inside.example/', 'the host has an address that is not public'],
    ['https://nowhere.example/', 'the host name could not be resolved'],
    ['ftp://127.0.0.1/', 'the URL is not https'],
    ['https://127.0.0.1:25/', 'the port is not 443 or from 1024 on'],
  ])('%s: %s', async (url, error) => {
    dns.set('inside.example', 'A', ['192.168.1.1']);
    expect(await send(url)).toEqual(failed(null, error));
  });

  it('is nobody’s fault when it was called off: nothing is told of it', async () => {
    const asked = new AbortController();
    const url = await receive(() => asked.abort());
    const sending = createSender({ egress, clock }).send(
      { url, key: webhookKey(secret), body, redelivery: false },
      asked.signal,
    );
    await expect(sending).rejects.toMatchObject({ code: 'aborted' });
  });
});

it('gives an attempt ten seconds, and reads 4 KiB of the answer [WHD-401, WHD-410]', async () => {
  const asked: unknown[] = [];
  const sender = createSender({
    clock,
    egress: {
      close: () => Promise.resolve(),
      send: ({ timeoutMs, maxResponseBytes }) => {
        asked.push([timeoutMs, maxResponseBytes]);
        return Promise.resolve({ status: 200, headers: {}, body: Buffer.alloc(0), truncated: false });
      },
    },
  });
  await sender.send({ url: 'https://hook.example/', key: webhookKey(secret), body, redelivery: false });
  expect(asked).toEqual([[10_000, 4_096]]);
});
