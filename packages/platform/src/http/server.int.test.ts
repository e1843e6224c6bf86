import { afterEach, describe, expect, it } from '@jest/globals';
import { type Problem } from '@millrace/contract';
import { captureLogger, waitFor } from '@millrace/testing';
import { Agent, type RequestListener, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { createHttpServer, type HttpServer, type HttpServerOptions } from './server.ts';

const open: HttpServer[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(open.splice(0).map((server) => server.close()));
});

const log = captureLogger();

async function serve(
  handler: RequestListener,
  options: Partial<HttpServerOptions> = {},
): Promise<{ server: HttpServer; port: number }> {
  const server = createHttpServer({
    host: '127.0.0.1',
    port: 0,
    handler,
    docsUrl: 'https://docs.example.com',
    newRequestId: () => 'req_raw',
    logger: log.logger,
    ...options,
  });
  const { port } = await server.listen();
  open.push(server);
  return { server, port };
}

/** A connection and all that came over it, settled when the server closes it. */
function dial(port: number, bytes: string): { socket: Socket; closed: Promise<string>; seen: () => string } {
  let seen = '';
  const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'));
  sockets.push(socket);
  socket.setEncoding('latin1').on('data', (chunk: string) => (seen += chunk));
  const closed = new Promise<string>((resolve) => {
    socket
      .on('error', () => undefined)
      .on('close', () => {
        resolve(seen);
      });
  });
  return { socket, closed, seen: () => seen };
}

const ok: RequestListener = (_request, response) => {
  response.end('ok');
};

describe('what never becomes a request', () => {
  it.each([
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['no host', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['bytes that an address must encode', 'GET /\xe9 HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
    [
      'length and chunks (smuggling)',
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      400,
    ],
    ['headers without end', `GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
  ])('%s is answered as a problem [ERR-009, ERR-010]', async (_what, bytes, status) => {
    const { port } = await serve(ok);
    const answer = await dial(port, bytes).closed;
    expect(answer.startsWith(`HTTP/1.1 ${status} `)).toBe(true);
    expect(answer).toContain('Content-Type: application/problem+json\r\n');
    expect(answer).toContain('X-Request-Id: req_raw\r\n');
    const problem = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as Problem;
    expect(problem).toMatchObject({ status, code: 'invalid_request' });
  });

  it.each([
    ['headers', 'GET / HTTP/1.1\r\nHost: x\r\n'],
    ['a body', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc'],
  ])('%s that come too slowly end with 408 [ERR-009]', async (_what, bytes) => {
    const waiting: RequestListener = (incoming, response) => {
      incoming
        .on('error', () => response.destroy())
        .on('end', () => response.end('ok'))
        .resume();
    };
    const { port } = await serve(waiting, { headersTimeoutMs: 150, requestTimeoutMs: 200 });
    const answer = await dial(port, bytes).closed;
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(answer).toContain('"code":"invalid_request"');
  });
});

describe('limits', () => {
  it('drops connections past the most it may have, and takes new ones once there is room', async () => {
    const { port } = await serve(ok, { maxConnections: 2 });
    const held = [
      dial(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
      dial(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
    ];
    await waitFor(() => held.every(({ seen }) => seen().includes('ok')));
    expect(await dial(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n').closed).toBe('');
    expect(log.lines.some((line) => line.message === 'connection dropped, too many')).toBe(true);
    held[0]?.socket.destroy();
    await held[0]?.closed;
    const again = await waitFor(async () => {
      const { closed } = dial(port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      return closed;
    });
    expect(again).toContain('200 OK');
  });
});

describe('closing', () => {
  it('ends idle connections at once and lets a request in flight finish, telling it to close', async () => {
    const arrived = Promise.withResolvers<undefined>();
    const release = Promise.withResolvers<undefined>();
    const { server, port } = await serve((incoming, response) => {
      if (incoming.url === '/idle') {
        response.end('ok');
        return;
      }
      arrived.resolve(undefined);
      void release.promise.then(() => response.end('done'));
    });
    const idle = dial(port, 'GET /idle HTTP/1.1\r\nHost: x\r\n\r\n');
    await waitFor(() => idle.seen().includes('ok'));
    const busy = dial(port, 'GET /busy HTTP/1.1\r\nHost: x\r\n\r\n');
    await arrived.promise;
    const closing = server.close();
    await idle.closed;
    expect(busy.seen()).toBe('');
    release.resolve(undefined);
    expect(await busy.closed).toMatch(/connection: close[^]*done/i);
    await closing;
    await expect(
      new Promise((_resolve, reject) => connect(port, '127.0.0.1').on('error', reject)),
    ).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('tells a connection to close at its next answer when the one in flight had begun', async () => {
    const release = Promise.withResolvers<undefined>();
    const { server, port } = await serve((incoming, response) => {
      if (incoming.url === '/next') {
        response.end('next');
        return;
      }
      response.write('begun');
      void release.promise.then(() => response.end());
    });
    const { socket, closed, seen } = dial(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await waitFor(() => seen().includes('begun'));
    const closing = server.close();
    release.resolve(undefined);
    socket.write('GET /next HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await closed).toMatch(/begun[^]*connection: close[^]*next/i);
    await closing;
  });

  it('does not wait for a kept-alive connection that goes on asking', async () => {
    const { server, port } = await serve(ok);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ask = (): Promise<unknown> =>
      new Promise((resolve) => {
        request({ port, agent }, (response) => {
          response.resume().on('end', resolve);
        })
          .on('error', resolve)
          .end();
      });
    await ask();
    const asking = (async () => {
      for (let i = 0; i < 50; i++) await ask();
    })();
    await server.close();
    await asking;
    agent.destroy();
  });

  it('cuts what does not end within the grace', async () => {
    const arrived = Promise.withResolvers<undefined>();
    const { server, port } = await serve(() => arrived.resolve(undefined), { graceMs: 50 });
    const stuck = dial(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await arrived.promise;
    await server.close();
    expect(await stuck.closed).toBe('');
  });

  it('rejects to listen where somebody else does', async () => {
    const { port } = await serve(ok);
    await expect(serve(ok, { port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});
