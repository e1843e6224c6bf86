import { randomUUID } from 'node:crypto';
import { type RequestListener } from 'node:http';
import { type AddressInfo } from 'node:net';
import { createHttpServer } from './http/server.ts';
import { type Logger } from './logger.ts';
import { type Metrics } from './metrics.ts';
import { type Health, type Service } from './service.ts';

export interface OpsServer {
  listen(): Promise<AddressInfo>;
  close(): Promise<void>;
}

/**
 * `/health`, `/ready` and `/metrics` of one service, on the operations port: never reachable from outside.
 * Listens before the service starts, so that a slow start can be told from a dead one.
 */
export function createOpsServer(options: {
  service: Pick<Service, 'health'>;
  metrics: Metrics;
  host: string;
  port: number;
  logger: Logger;
}): OpsServer {
  const { service, metrics, logger } = options;
  metrics.observe('millrace_ready', 'Whether the service says that it is ready.', () =>
    service.health().ready ? 1 : 0,
  );
  const handler: RequestListener = (request, response) => {
    const send = (status: number, type: string, body: string): void => {
      response.writeHead(status, { 'Content-Type': type, 'Cache-Control': 'no-store' }).end(body);
    };
    const tell = (isFine: (health: Health) => boolean): void => {
      const health = service.health();
      const fine = isFine(health);
      const body = JSON.stringify({ status: fine ? 'ok' : 'failing', checks: health.checks });
      send(fine ? 200 : 503, 'application/json', body);
    };
    const path = request.url?.split('?', 1)[0];
    if (path === '/health') tell((health) => health.healthy);
    else if (path === '/ready') tell((health) => health.ready);
    else if (path === '/metrics') {
      metrics.render().then(
        (text) => {
          send(200, metrics.contentType, text);
        },
        (error: unknown) => {
          logger.error({ err: error }, 'metrics could not be rendered');
          send(500, 'text/plain', 'metrics could not be rendered\n');
        },
      );
    } else send(404, 'text/plain', 'only /health, /ready and /metrics are here\n');
  };
  const { host, port } = options;
  return createHttpServer({
    host,
    port,
    handler,
    docsUrl: '',
    newRequestId: randomUUID,
    logger,
    graceMs: 1_000,
  });
}
