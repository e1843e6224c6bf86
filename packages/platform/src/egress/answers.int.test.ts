import { type ServerResponse } from 'node:http';
import { type Socket } from 'node:net';
import { waitFor } from '@millrace/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type EgressAnswer, type EgressConnector, type EgressRequest } from './egress.ts';
import { createScene, inside, type Listener, post, type Scene } from './testing/scene.ts';

let scene: Scene;
let guard: EgressConnector;

beforeAll(async () => (scene = await createScene()));
afterEach(() => scene.clear());
afterAll(() => scene.close());

/** Sends to a server that answers as told, in plain http, which a raw socket can speak. */
async function sendTo(
  onRequest: (socket: Socket) => void,
  over: Partial<EgressRequest> = {},
): Promise<{ answer: Promise<EgressAnswer>; server: Listener }> {
  const server = await scene.serveTcp((socket) => socket.once('data', () => onRequest(socket)), inside);
  guard = scene.egress({ loopback: true });
  return { answer: guard.send(post(`http://127.0.0.1:${server.port}/`, over)), server };
}

/** Writes for as long as the other side takes it. */
function pour(socket: Socket, chunk: Buffer): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', more);
  more();
}

describe('a redirect', () => {
  it.each([301, 302, 303, 307, 308])('%i is an answer and is not followed', async (status) => {
    const trap = await scene.serveTcp((socket) => socket.destroy(), inside);
    for (const location of [`http://127.0.0.1:${trap.port}/`, 'http://169.254.169.254/latest/', '/again']) {
      let requests = 0;
      const receiver = await scene.serveTls((_request, response) => {
        requests += 1;
        response.writeHead(status, { location }).end();
      });
      const answer = await scene.egress().send(post(`https://hook.example:${receiver.port}/`));
      expect(answer).toMatchObject({ status, headers: { location } });
      expect(requests).toBe(1);
    }
    expect(trap.connections).toBe(0);
  });
});

describe('time', () => {
  const timeoutMs = 250;
  async function expectTimeout(answer: Promise<EgressAnswer>, status: number | null): Promise<void> {
    // Where the deadline does not hold, the answer never comes.
    await expect(answer).rejects.toMatchObject({
      code: 'timeout',
      message: 'no whole answer within 0.25 s',
      status,
    });
  }

  it('ends a handshake that does not go on', async () => {
    const server = await scene.serveTcp((socket) => socket.resume());
    await expectTimeout(
      scene.egress().send(post(`https://hook.example:${server.port}/`, { timeoutMs })),
      null,
    );
    await waitFor(() => server.sockets.size === 0);
  });

  it('ends a connection that is accepted and never answered', async () => {
    const { answer, server } = await sendTo(() => undefined, { timeoutMs });
    await expectTimeout(answer, null);
    await waitFor(() => server.sockets.size === 0);
  });

  it.each([
    ['head', 'HTTP/1.1 200 OK\r\nx-a: ', null],
    ['body', 'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n', 200],
    ['body of unknown length', 'HTTP/1.1 200 OK\r\n\r\n', 200],
  ])('is not lengthened by a %s that drips', async (_what, head, status) => {
    let drip: NodeJS.Timeout | undefined;
    const { answer, server } = await sendTo(
      (socket) => {
        socket.write(head);
        drip = setInterval(() => socket.write('x'), 20);
      },
      { timeoutMs },
    );
    await expectTimeout(answer, status).finally(() => clearInterval(drip));
    await waitFor(() => server.sockets.size === 0);
  });

  it('ends announcements without end', async () => {
    let drip: NodeJS.Timeout | undefined;
    const { answer, server } = await sendTo(
      (socket) => {
        drip = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n'), 5);
      },
      { timeoutMs },
    );
    await expectTimeout(answer, null).finally(() => clearInterval(drip));
    await waitFor(() => server.sockets.size === 0);
  });

  it('can be called off', async () => {
    const asked = new AbortController();
    const { answer, server } = await sendTo(() => asked.abort(), { signal: asked.signal });
    await expect(answer).rejects.toMatchObject({ code: 'aborted' });
    await waitFor(() => server.sockets.size === 0);
  });

  it('is not begun when it was called off before', async () => {
    const { answer, server } = await sendTo(() => undefined, { signal: AbortSignal.abort() });
    await expect(answer).rejects.toMatchObject({ code: 'aborted' });
    await waitFor(() => server.sockets.size === 0);
  });
});

describe('an answer', () => {
  const megabyte = Buffer.alloc(1024 * 1024, 'x');

  it.each([
    ['200 MB', 'HTTP/1.1 200 OK\r\ncontent-length: 209715200\r\n\r\n'],
    ['no end', 'HTTP/1.1 200 OK\r\n\r\n'],
  ])('of %s is cut, and its connection closed', async (_size, head) => {
    let sent = 0;
    const { answer, server } = await sendTo((socket) => {
      socket.once('close', () => (sent = socket.bytesWritten));
      socket.write(head);
      pour(socket, megabyte);
    });
    const { status, body, truncated } = await answer;
    expect([status, body.length, truncated]).toEqual([200, 4_096, true]);
    await waitFor(() => server.sockets.size === 0);
    // What the kernel's buffers and the sender's one write held, and no more.
    expect(sent).toBeLessThan(16 * megabyte.length);
  });

  it('of exactly the limit is whole', async () => {
    const { answer } = await sendTo((socket) =>
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 4096\r\n\r\n${'y'.repeat(4_096)}`),
    );
    expect(await answer).toMatchObject({ truncated: false, body: { length: 4_096 } });
  });

  it.each([
    ['one header', () => Buffer.alloc(64 * 1024, 'x')],
    ['many headers', () => Buffer.from('x-a: b\r\n'.repeat(8 * 1024))],
  ])('with a head without end (%s) is refused', async (_what, chunk) => {
    const { answer, server } = await sendTo((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nx-long: ');
      pour(socket, chunk());
    });
    await expect(answer).rejects.toMatchObject({
      code: 'bad_answer',
      message: 'the head of the answer is too long',
    });
    await waitFor(() => server.sockets.size === 0);
  });

  it('with trailers without end is refused', async () => {
    const { answer, server } = await sendTo((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n');
      pour(socket, Buffer.from('x-a: b\r\n'.repeat(8 * 1024)));
    });
    await expect(answer).rejects.toMatchObject({ code: 'bad_answer', status: 200 });
    await waitFor(() => server.sockets.size === 0);
  });

  it.each([
    ['noise', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['an upgrade', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
    ['both framings', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\na'],
  ])('that is %s is refused', async (_what, bytes) => {
    const { answer } = await sendTo((socket) => socket.write(bytes));
    await expect(answer).rejects.toMatchObject({ code: 'bad_answer' });
  });

  it.each([
    ['before it began', '', null],
    ['in its head', 'HTTP/1.1 200 OK\r\nx-a: b', null],
    ['in its body', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc', 200],
  ])('that ends %s is lost', async (_when, bytes, status) => {
    const { answer } = await sendTo((socket) => socket.end(bytes));
    await expect(answer).rejects.toMatchObject({ code: 'connection_lost', status });
  });

  it('comes after its announcements', async () => {
    const { answer } = await sendTo((socket) =>
      socket.write(
        'HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\nHTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n',
      ),
    );
    expect(await answer).toMatchObject({ status: 202 });
  });

  it('is not unpacked', async () => {
    const receiver = await scene.serveTls((_request, response: ServerResponse) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end('not gzip at all');
    });
    const { body } = await scene.egress().send(post(`https://hook.example:${receiver.port}/`));
    expect(Buffer.from(body).toString()).toBe('not gzip at all');
  });
});
