import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import { type AddressInfo } from 'node:net';
import { expect, it } from '@jest/globals';
import { BodyStream } from './body-stream.ts';

it('a body that breaks off before anybody reads it ends nothing, and is told to whoever reads it then', async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-length': '10' });
    response.write('12345', () => response.destroy());
  }).listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const request = get({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    const body = new BodyStream(answer, 60_000);
    // Not `events.once`, which would hear the error.
    await new Promise((resolve) => body.once('close', resolve));
    await expect(body.toArray()).rejects.toMatchObject({ code: 'unavailable' });
  } finally {
    server.close();
  }
});
