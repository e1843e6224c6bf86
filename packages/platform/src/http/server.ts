import { ProblemError } from '@millrace/contract';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { type Duplex } from 'node:stream';
import { type Logger } from '../logger.ts';
import { problemFor, sendProblem } from './answer.ts';

export interface HttpServerOptions {
  host: string;
  /** 0 takes a free one. */
  port: number;
  handler: RequestListener;
  docsUrl: string;
  newRequestId: () => string;
  logger: Logger;
  /** More headers, as `Name: value`, of the refusals of what never became a request. */
  refusalHeaders?: readonly string[];
  /** Connections at most; more are closed at once. 4,096 unless told. */
  maxConnections?: number;
  /** How long a closing server waits for requests in flight, in milliseconds; 10 s unless told. */
  graceMs?: number;
  /** How long a client may take to send its headers, in milliseconds; 10 s unless told. */
  headersTimeoutMs?: number;
  /** How long a client may take to send a whole request, in milliseconds; 30 s unless told. */
  requestTimeoutMs?: number;
}

export interface HttpServer {
  /** Resolves with the address it listens on. */
  listen(): Promise<AddressInfo>;
  /** Takes no more connections, ends idle ones, lets requests in flight finish within the grace, then cuts. */
  close(): Promise<void>;
}

/** Longer than the 60 s for which load balancers keep an idle connection, so that they close it, not we. */
const keepAliveMs = 65_000;

/** A plain HTTP server with limits on what a client may hold: connections, headers, time. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const answering = new Set<ServerResponse>();
  let closing = false;
  const onRequest: RequestListener = (request, response) => {
    answering.add(response);
    response.once('close', () => answering.delete(response));
    if (closing) response.setHeader('Connection', 'close');
    if (request.headers.host === undefined && request.httpVersion === '1.1')
      refuseHostless(response, options);
    else options.handler(request, response);
  };
  const headersTimeout = options.headersTimeoutMs ?? 10_000;
  const requestTimeout = options.requestTimeoutMs ?? 30_000;
  const server = createServer({
    headersTimeout,
    requestTimeout,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: Math.min(1_000, headersTimeout),
    maxHeaderSize: 16 * 1024,
    // Refused here, since Node's own refusal has no body that says why.
    requireHostHeader: false,
  });
  server.maxConnections = options.maxConnections ?? 4_096;
  server.maxHeadersCount = 100;
  server.on('request', onRequest);
  // The handler decides whether the body is worth sending; other expectations are none of ours.
  server.on('checkContinue', onRequest).on('checkExpectation', onRequest);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    refuse(error, socket, options);
  });
  server.on('drop', () => {
    options.logger.warn({ maxConnections: server.maxConnections }, 'connection dropped, too many');
  });
  return {
    listen: () => listen(server, options),
    close: async () => {
      closing = true;
      for (const response of answering) {
        if (!response.headersSent) response.setHeader('Connection', 'close');
      }
      const timer = setTimeout(() => {
        server.closeAllConnections();
      }, options.graceMs ?? 10_000);
      await new Promise<void>((resolve) => server.close(() => resolve()));
      clearTimeout(timer);
    },
  };
}

function listen(server: Server, options: HttpServerOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: options.host, port: options.port, backlog: 1_024 }, () => {
      server.off('error', reject);
      server.on('error', (error) => {
        options.logger.error({ err: error }, 'http server error');
      });
      resolve(server.address() as AddressInfo);
    });
  });
}

/** RFC 9112 §3.2: a request of HTTP/1.1 names its host. */
function refuseHostless(response: ServerResponse, options: HttpServerOptions): void {
  for (const header of options.refusalHeaders ?? []) {
    const [name = '', value = ''] = header.split(': ');
    response.setHeader(name, value);
  }
  response.setHeader('X-Request-Id', options.newRequestId());
  response.setHeader('Connection', 'close');
  const detail = 'The request names no host.';
  sendProblem(response, new ProblemError('invalid_request', { detail }), options.docsUrl);
}

/** What never became a request is answered by hand: there is no response object for it. */
function refuse(error: NodeJS.ErrnoException, socket: Duplex, options: HttpServerOptions): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status = statuses[error.code ?? ''] ?? '400 Bad Request';
  const problem = new ProblemError('invalid_request', {
    status: Number.parseInt(status, 10),
    detail: 'The request is not valid HTTP, too large, or came too slowly.',
  });
  const body = JSON.stringify(problemFor(problem, options.docsUrl));
  const head = [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${options.newRequestId()}`,
    ...(options.refusalHeaders ?? []),
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

const statuses: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};
