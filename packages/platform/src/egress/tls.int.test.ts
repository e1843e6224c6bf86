import { execFile } from 'node:child_process';
import { type IncomingMessage } from 'node:http';
import { type Socket } from 'node:net';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestCertificate } from '@millrace/testing';
import { createScene, outside, post, type Scene } from './testing/scene.ts';

let scene: Scene;

beforeAll(async () => (scene = await createScene()));
afterEach(() => scene.clear());
afterAll(() => scene.close());

/** The name that the client's TLS asked for. */
const sniOf = (request: IncomingMessage): unknown => Reflect.get(request.socket, 'servername');

describe('TLS', () => {
  it('asks for the host’s name and has it proved, whatever address it leads to', async () => {
    const asked: unknown[] = [];
    const receiver = await scene.serveTls((request, response) => {
      asked.push([sniOf(request), request.headers.host]);
      response.end();
    });
    scene.dns.set('other.example', 'A', [outside]);
    const guard = scene.egress();
    expect(await guard.send(post(`https://HOOK.example:${receiver.port}/`))).toMatchObject({ status: 200 });
    await expect(guard.send(post(`https://other.example:${receiver.port}/`))).rejects.toMatchObject({
      code: 'tls_failed',
      message: "no TLS that proves the host's name (ERR_TLS_CERT_ALTNAME_INVALID)",
    });
    expect(asked).toEqual([['hook.example', `hook.example:${receiver.port}`]]);
  });

  it('asks without the final dot of a name', async () => {
    const asked: unknown[] = [];
    const receiver = await scene.serveTls((request, response) => {
      asked.push(sniOf(request));
      response.end();
    });
    expect(await scene.egress().send(post(`https://hook.example.:${receiver.port}/`))).toMatchObject({
      status: 200,
    });
    expect(asked).toEqual(['hook.example']);
  });

  it('has an address in the URL proved as an address', async () => {
    const receiver = await scene.serveTls((_request, response) => response.end());
    expect(await scene.egress().send(post(`https://${outside}:${receiver.port}/`))).toMatchObject({
      status: 200,
    });
    const named = await scene.serveTls(
      (_request, response) => response.end(),
      await createTestCertificate('DNS:hook.example'),
    );
    await expect(scene.egress().send(post(`https://${outside}:${named.port}/`))).rejects.toMatchObject({
      code: 'tls_failed',
    });
  });

  it('carries HTTP/1.1, whatever else is offered', async () => {
    const versions: string[] = [];
    const receiver = await scene.serveTls((request, response) => {
      versions.push(request.httpVersion);
      response.end();
    });
    await scene.egress().send(post(`https://hook.example:${receiver.port}/`));
    expect(versions).toEqual(['1.1']);
  });

  it('trusts nobody but the authorities', async () => {
    const receiver = await scene.serveTls(
      (_request, response) => response.end(),
      await createTestCertificate('DNS:hook.example'),
    );
    await expect(scene.egress().send(post(`https://hook.example:${receiver.port}/`))).rejects.toMatchObject({
      code: 'tls_failed',
    });
  });

  it('trusts nobody more when the environment says so', async () => {
    const receiver = await scene.serveTls((_request, response) => response.end());
    // A process of its own: Node reads the real environment, of which a test has a copy.
    const script = `
      const { createEgress } = await import(${JSON.stringify(import.meta.resolve('./guarded-egress.ts'))});
      const egress = createEgress({ loopback: true });
      const request = { method: 'GET', headers: {}, timeoutMs: 5_000, maxResponseBytes: 10 };
      const sending = egress.send({ ...request, url: 'https://${outside}:${receiver.port}/' });
      console.log(await sending.then(({ status }) => status, ({ code }) => code));
      await egress.close();`;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', script],
      { env: { ...process.env, NODE_OPTIONS: '', NODE_TLS_REJECT_UNAUTHORIZED: '0' } },
    );
    expect(stdout.trim()).toBe('tls_failed');
  });

  it.each([
    ['closes', (socket: Socket) => socket.destroy()],
    ['speaks no TLS', (socket: Socket) => socket.end('220 mail.example ESMTP\r\n')],
  ])('fails with a server that %s', async (_what, onConnection) => {
    const server = await scene.serveTcp(onConnection);
    await expect(scene.egress().send(post(`https://hook.example:${server.port}/`))).rejects.toMatchObject({
      code: 'tls_failed',
    });
  });

  it('is not begun where nobody listens', async () => {
    const server = await scene.serveTcp(() => undefined);
    await scene.clear();
    await expect(scene.egress().send(post(`https://hook.example:${server.port}/`))).rejects.toMatchObject({
      code: 'connect_failed',
      message: 'could not connect (ECONNREFUSED)',
    });
  });
});
