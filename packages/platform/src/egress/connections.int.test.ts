import { type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { connectGuarded } from './guarded-connect.ts';
import { readTarget } from './target.ts';
import { createScene, inside, outside, post, type Scene } from './testing/scene.ts';

let scene: Scene;

beforeAll(async () => (scene = await createScene()));
afterEach(() => scene.clear());
afterAll(() => scene.close());

const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
const answerEach = (socket: Socket): unknown => socket.on('data', () => socket.write(ok));

describe('a kept connection', () => {
  it('carries the next exchange of its origin, and another one those at the same time', async () => {
    const receiver = await scene.serveTls((_request, response) => response.end());
    const guard = scene.egress();
    const url = `https://hook.example:${receiver.port}/`;
    for (let i = 0; i < 5; i += 1) await guard.send(post(url));
    expect(receiver.connections).toBe(1);
    await Promise.all([guard.send(post(url)), guard.send(post(url))]);
    expect(receiver.connections).toBe(2);
  });

  it('goes on leading to the address it was checked for, when the name has moved inside', async () => {
    const { receiver, traps } = await scene.serveTlsBesideTraps((_request, response) => response.end());
    const guard = scene.egress();
    const url = `https://hook.example:${receiver.port}/`;
    await guard.send(post(url));
    scene.dns.set('hook.example', 'A', [inside], 0);
    const [kept, fresh] = await Promise.allSettled([guard.send(post(url)), guard.send(post(url))]);
    scene.dns.set('hook.example', 'A', [outside]);
    expect(kept).toMatchObject({ status: 'fulfilled' });
    expect(fresh).toMatchObject({ status: 'rejected', reason: { code: 'address_refused' } });
    expect([receiver, ...traps].map(({ connections }) => connections)).toEqual([1, 0, 0]);
  });

  it('does not free its URL from the rules', async () => {
    const server = await scene.serveTcp(answerEach, inside);
    const guard = scene.egress({ loopback: true });
    await guard.send(post(`http://127.0.0.1:${server.port}/`));
    await expect(guard.send(post(`http://user@127.0.0.1:${server.port}/`))).rejects.toMatchObject({
      code: 'url_refused',
    });
  });

  it('is one of a bounded number, the longest unused going first', async () => {
    const servers = await Promise.all([1, 2, 3].map(() => scene.serveTcp(answerEach, inside)));
    const guard = scene.egress({ loopback: true, maxIdle: 2 });
    for (const { port } of servers) await guard.send(post(`http://127.0.0.1:${port}/`));
    await waitFor(() => servers[0]?.sockets.size === 0);
    expect(servers.map(({ sockets }) => sockets.size)).toEqual([0, 1, 1]);
  });

  it('does not count among them when the other side has closed it', async () => {
    const [first, second, third] = await Promise.all([1, 2, 3].map(() => scene.serveTcp(answerEach, inside)));
    const guard = scene.egress({ loopback: true, maxIdle: 2 });
    const sendTo = (server = first): Promise<unknown> =>
      guard.send(post(`http://127.0.0.1:${server?.port}/`));
    await sendTo(first);
    await sendTo(second);
    for (const socket of second?.sockets ?? []) socket.end();
    await waitFor(() => second?.sockets.size === 0);
    await sendTo(third);
    await sendTo(first);
    expect([first?.connections, second?.sockets.size, third?.sockets.size]).toEqual([1, 0, 1]);
  });

  it.each([
    ['', ok],
    [
      ', though the other side would keep it for longer',
      ok.replace('\r\n\r\n', '\r\nkeep-alive: timeout=600\r\n\r\n'),
    ],
  ])('is closed when it has not been used for a while%s', async (_what, answer) => {
    const server = await scene.serveTcp((socket) => socket.on('data', () => socket.write(answer)), inside);
    const guard = scene.egress({ loopback: true, idleMs: 50 });
    await guard.send(post(`http://127.0.0.1:${server.port}/`));
    await waitFor(() => server.sockets.size === 0, { timeoutMs: 3_000 });
  });

  it('is not ended by the deadline or the signal of an exchange that it carried before', async () => {
    const before = new AbortController();
    let requests = 0;
    const server = await scene.serveTcp((socket) => {
      socket.on('data', () => {
        requests += 1;
        if (requests === 1) return void socket.write(ok);
        before.abort();
        setTimeout(() => socket.write(ok), 200);
      });
    }, inside);
    const guard = scene.egress({ loopback: true });
    const url = `http://127.0.0.1:${server.port}/`;
    await guard.send(post(url, { timeoutMs: 100, signal: before.signal }));
    expect(await guard.send(post(url))).toMatchObject({ status: 200 });
    expect(server.connections).toBe(1);
  });

  it('is not kept when the answer says so', async () => {
    const server = await scene.serveTcp(
      (socket) =>
        socket.on('data', () => socket.write(ok.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'))),
      inside,
    );
    const guard = scene.egress({ loopback: true });
    await guard.send(post(`http://127.0.0.1:${server.port}/`));
    await waitFor(() => server.sockets.size === 0);
    await guard.send(post(`http://127.0.0.1:${server.port}/`));
    expect(server.connections).toBe(2);
  });

  it('that was fed with an answer nobody asked for is not used', async () => {
    const server = await scene.serveTcp(
      (socket) => socket.on('data', () => socket.write(ok + ok.replace('200', '500'))),
      inside,
    );
    const guard = scene.egress({ loopback: true });
    for (let i = 0; i < 3; i += 1) {
      expect(await guard.send(post(`http://127.0.0.1:${server.port}/`))).toMatchObject({ status: 200 });
      await waitFor(() => server.sockets.size === 0);
    }
  });

  /** Answers the first request of a connection and closes at the second. */
  const closesAtSecond = (): Promise<{ port: number; connections: number }> =>
    scene.serveTcp((socket) => {
      socket.once('data', () => {
        socket.write(ok);
        socket.once('data', () => socket.destroy());
      });
    }, inside);

  it('that turns out closed is replaced once, for a request that may be repeated', async () => {
    const server = await closesAtSecond();
    const guard = scene.egress({ loopback: true });
    const request = post(`http://127.0.0.1:${server.port}/`, { repeatable: true });
    await guard.send(request);
    expect(await guard.send(request)).toMatchObject({ status: 200 });
    expect(server.connections).toBe(2);
  });

  it('that turns out closed loses a request that may not be repeated', async () => {
    const server = await closesAtSecond();
    const guard = scene.egress({ loopback: true });
    await guard.send(post(`http://127.0.0.1:${server.port}/`));
    await expect(guard.send(post(`http://127.0.0.1:${server.port}/`))).rejects.toMatchObject({
      code: 'connection_lost',
    });
    expect(server.connections).toBe(1);
  });

  it('that carries a wrong answer is not replaced: the request has been received', async () => {
    const answers = [ok, 'SSH-2.0-x\r\n'];
    const server = await scene.serveTcp(
      (socket) => socket.on('data', () => socket.write(answers.shift() ?? ok)),
      inside,
    );
    const guard = scene.egress({ loopback: true });
    const request = post(`http://127.0.0.1:${server.port}/`, { repeatable: true });
    await guard.send(request);
    await expect(guard.send(request)).rejects.toMatchObject({ code: 'bad_answer' });
    expect(server.connections).toBe(1);
  });

  it('is the only one that is replaced', async () => {
    const server = await scene.serveTcp((socket) => socket.once('data', () => socket.destroy()), inside);
    const guard = scene.egress({ loopback: true });
    await expect(
      guard.send(post(`http://127.0.0.1:${server.port}/`, { repeatable: true })),
    ).rejects.toMatchObject({ code: 'connection_lost' });
    expect(server.connections).toBe(1);
  });
});

describe('closing', () => {
  it('in the moment between look-up and connection lets no connection be made', async () => {
    const server = await scene.serveTcp(answerEach, inside);
    const target = readTarget(`http://127.0.0.1:${server.port}/`, { plainHttp: true });
    const reason = new Error('over');
    await expect(connectGuarded(target, { loopback: true }, AbortSignal.abort(reason))).rejects.toBe(reason);
    // Connections are taken in order: had there been one, it would have come before this one.
    await scene.egress({ loopback: true }).send(post(`http://127.0.0.1:${server.port}/`));
    expect(server.connections).toBe(1);
  });

  it('ends idle and busy connections, and begins nothing more', async () => {
    const server = await scene.serveTcp((socket) => {
      socket.once('data', () => {
        socket.write(ok);
        socket.resume();
      });
    }, inside);
    const guard = scene.egress({ loopback: true });
    const request = post(`http://127.0.0.1:${server.port}/`);
    await Promise.all([guard.send(request), guard.send(request)]);
    const busy = guard.send(request);
    await Promise.all([expect(busy).rejects.toMatchObject({ code: 'aborted' }), guard.close()]);
    await waitFor(() => server.sockets.size === 0);
    await expect(guard.send(request)).rejects.toMatchObject({ code: 'aborted' });
    expect(server.connections).toBe(2);
  });

  it('leaves nothing open after any outcome', async () => {
    const count = (): number =>
      process.getActiveResourcesInfo().filter((name) => ['TCPSocketWrap', 'TLSWrap'].includes(name)).length;
    const before = count();
    const good = await scene.serveTls((_request, response) => response.end('x'.repeat(10_000)));
    const bad = await scene.serveTcp((socket) => socket.resume());
    const guard = scene.egress();
    const sends = Array.from({ length: 15 }, () => [
      guard.send(post(`https://hook.example:${good.port}/`)),
      guard.send(post(`https://hook.example:${bad.port}/`, { timeoutMs: 100 })),
    ]).flat();
    const outcomes = await Promise.allSettled(sends);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(15);
    await guard.close();
    await waitFor(() => good.sockets.size + bad.sockets.size === 0);
    await waitFor(() => count() <= before);
  });
});
