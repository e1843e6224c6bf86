import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type Logger } from '@millrace/platform';

export interface DevIdentityProvider {
  issuer: string;
  clientId: string;
  clientSecret: string;
  close(): Promise<void>;
}

/** Always this machine alone, wherever the service listens: it signs anybody in as anybody. */
export const identityHost = '127.0.0.1';

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/**
 * An OpenID Connect provider for development, on loopback: a form asks whom to be.
 * @param options.port 0 for a free one
 * @param options.redirectUris where sign-ins may come back to
 */
export async function startDevIdentityProvider(options: {
  port: number;
  redirectUris: readonly string[];
  logger: Logger;
}): Promise<DevIdentityProvider> {
  const { port, redirectUris, logger } = options;
  const server = createServer().listen(port, identityHost);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the identity provider has no port');
  const authority = `${identityHost}:${address.port}`;
  const client = { id: 'millrace-dev', secret: randomBytes(32).toString('base64url'), redirectUris };
  let handler: Promise<Handler> | undefined;
  server.on('request', (request, response) => {
    // A name of another site that leads here (DNS rebinding) must not let its pages sign in.
    if (request.headers.host !== authority) {
      response.writeHead(421).end();
      return;
    }
    // The library takes a third of a second to load, which a start without a sign-in need not spend.
    handler ??= import('./interactions.ts').then(({ createIdentityHandler }) =>
      createIdentityHandler(`http://${authority}`, client),
    );
    handler
      .then((handle) => handle(request, response))
      .catch((error: unknown) => {
        logger.error({ err: error }, 'the identity provider failed');
        response.destroy();
      });
  });
  return {
    issuer: `http://${authority}`,
    clientId: client.id,
    clientSecret: client.secret,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
