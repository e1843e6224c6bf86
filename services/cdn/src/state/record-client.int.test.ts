import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { problemOf } from '@millrace/contract';
import { accountState, projectState, sample, videoState } from '../testing/sample.ts';
import { createRecordClient, type RecordClient } from './record-client.ts';

let server: Server;
let client: RecordClient;
async function closeAll(): Promise<void> {
  client.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
afterEach(closeAll);

/** A route that answers as told; `read` asks it for the sample video. */
async function setUp(listener: RequestListener, timeoutMs = 5_000) {
  server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  client = createRecordClient({ url, secret: 'the-secret', timeoutMs });
  return () => client.read(sample.videoId);
}

const answering =
  (status: number, body: unknown): RequestListener =>
  (_request, response) => {
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
  };
const good = { video: videoState(), account: accountState(), project: projectState() };

describe('the record client', () => {
  it('asks the internal route with the secret and ignores fields it does not know', async () => {
    let seen: unknown;
    const read = await setUp((request, response) => {
      seen = [request.method, request.url, request.headers['x-internal-secret']];
      answering(200, { ...good, more: 1 })(request, response);
    });
    expect(await read()).toEqual(good);
    expect(seen).toEqual(['GET', `/internal/playback-state/${sample.videoId}`, 'the-secret']);
  });

  it('takes only the own 404 of the API for an unknown video', async () => {
    const read = await setUp(answering(404, problemOf('https://docs.example', 'not_found')));
    expect(await read()).toEqual({ video: null, account: null, project: null });
  });

  it.each<[string, RequestListener]>([
    ['a bare 404', answering(404, '<h1>Not Found</h1>')],
    ['401', answering(401, problemOf('https://docs.example', 'unauthorized'))],
    ['500', answering(500, good)],
    ['a redirect', (_request, response) => void response.writeHead(302, { Location: '/' }).end()],
    ['no JSON', answering(200, 'ready')],
    ['another form', answering(200, { video: { ...good.video, status: 'paused' }, account: null })],
    ['another video', answering(200, { ...good, video: videoState({ videoId: 'vid_2' }) })],
    ['another project', answering(200, { ...good, project: projectState({ projectId: 'prj_2' }) })],
    ['another account', answering(200, { ...good, account: accountState({ accountId: 'acc_2' }) })],
    ['a ready video without account', answering(200, { ...good, account: null })],
    ['an endless answer', (_request, response) => void response.writeHead(200).end('x'.repeat(70_000))],
    ['a broken connection', (request) => void request.socket.destroy()],
    [
      'half an answer',
      (_request, response) => {
        response.writeHead(200, { 'Content-Length': 1_000 }).write('{"video"');
        setImmediate(() => response.destroy());
      },
    ],
  ])('fails on %s', async (_title, listener) => {
    const read = await setUp(listener);
    await expect(read()).rejects.toMatchObject({ code: 'record_unavailable' });
  });

  it.each<[string, RequestListener]>([
    ['no answer', () => undefined],
    ['an answer that does not end', (_request, response) => void response.writeHead(200).write('{')],
  ])('waits for %s no longer than it may', async (_title, listener) => {
    const read = await setUp(listener, 50);
    await expect(read()).rejects.toMatchObject({ code: 'record_unavailable' });
  });

  it('notes the process, and only when the API says that the record knows of it', async () => {
    let seen: unknown;
    await setUp((request, response) => {
      void request.toArray().then((chunks: Buffer[]) => {
        const { method, url, headers } = request;
        seen = [method, url, headers['x-internal-secret'], headers['content-type'], String(chunks)];
        answering(200, {})(request, response);
      });
    });
    await client.note('ab12', { cutOff: true });
    expect(seen).toEqual([
      ...['PUT', '/internal/cdn-processes/ab12', 'the-secret', 'application/json', '{"cutOff":true}'],
    ]);
    await closeAll();
    await setUp(answering(404, problemOf('https://docs.example', 'not_found')));
    await expect(client.note('ab12', { cutOff: true })).rejects.toMatchObject({ code: 'record_unavailable' });
  });
});
