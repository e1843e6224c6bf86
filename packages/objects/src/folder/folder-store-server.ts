import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { type Logger, type Service } from '@millrace/platform';
import { type FolderObjectStore } from './folder-object-store.ts';
import { type PartTarget } from './part-urls.ts';
import { refusalOf, S3Error, toS3Error } from './s3-error.ts';

export interface FolderStoreServerOptions {
  store: FolderObjectStore;
  logger: Logger;
  /** Loopback unless told. */
  host?: string;
  /** A free one unless told. */
  port?: number;
  /** The longest part, in bytes; S3's 5 GiB unless told. */
  maxPartBytes?: number;
  /** How long a connection may be silent, in milliseconds; 60 s unless told. */
  idleTimeoutMs?: number;
  /** How long a stop waits for uploads in flight, in milliseconds; 10 s unless told. */
  stopGraceMs?: number;
}

export interface FolderStoreServer extends Service {
  /** The port that it listens on; throws before the start. */
  readonly port: number;
}

/** 5 GiB at 2 Mbit/s; slower senders are cut off. */
const maxRequestMs = 6 * 3_600_000;
const maxConnections = 1_000;
/** How much of a refused body is read and thrown away, so that its sender gets to read the answer. */
const lingerBytes = 64 * 1024 ** 2;

/** Serves the part URLs of a folder store: `PUT` as S3 takes it, its CORS preflight, and nothing else. */
export function createFolderStoreServer(options: FolderStoreServerOptions): FolderStoreServer {
  const { host = '127.0.0.1', port = 0, idleTimeoutMs = 60_000, stopGraceMs = 10_000, logger } = options;
  const answer = createAnswer(options);
  let server: Server | null = null;
  return {
    name: 'object-store',
    get port() {
      const address = server?.address() as AddressInfo | null | undefined;
      if (!address) throw new Error('the object store server is not listening');
      return address.port;
    },
    start: async (signal) => {
      const started = createServer({ requestTimeout: maxRequestMs });
      server = started;
      started.timeout = idleTimeoutMs;
      started.maxConnections = maxConnections;
      const serve =
        (awaitsContinue: boolean) =>
        (request: IncomingMessage, response: ServerResponse): void => {
          // A stop closes idle connections once; one that falls idle after it would be waited for.
          response.once('close', () => {
            if (!started.listening) started.closeIdleConnections();
          });
          void answer(request, response, awaitsContinue);
        };
      started.on('request', serve(false));
      // Handled here so that the client is told to go on only when its body is wanted.
      started.on('checkContinue', serve(true));
      started.listen(port, host);
      await once(started, 'listening', { signal });
      logger.info({ host, port: (started.address() as AddressInfo).port }, 'object store listening');
    },
    stop: async () => {
      const stopping = server;
      server = null;
      if (!stopping) return;
      const timer = setTimeout(() => stopping.closeAllConnections(), stopGraceMs);
      await new Promise((resolve) => stopping.close(resolve));
      clearTimeout(timer);
    },
    health: () => {
      const listening = server?.listening === true;
      return { healthy: true, ready: listening, checks: { listen: listening ? 'ok' : 'not listening' } };
    },
  };
}

type Answer = (request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean) => Promise<void>;

function createAnswer({ store, logger, maxPartBytes = 5 * 1024 ** 3 }: FolderStoreServerOptions): Answer {
  return async (request, response, awaitsContinue) => {
    const requestId = randomBytes(8).toString('hex');
    response.setHeader('X-Request-Id', requestId);
    response.setHeader('Access-Control-Allow-Origin', '*');
    response.setHeader('Access-Control-Expose-Headers', 'ETag, X-Request-Id');
    const refuse = (error: S3Error): void => sendError(request, response, { error, requestId });
    // Without a listener the socket is destroyed, and the client never reads why.
    request.once('timeout', () => {
      response.once('finish', () => request.destroy());
      refuse(new S3Error('RequestTimeout'));
    });
    try {
      if (request.method === 'OPTIONS') preflight(request, response);
      else {
        const target = targetOf(request, store);
        const described = describeBody(request, maxPartBytes);
        // S3 finds it out by the signature, which covers the header then.
        if (described.sizeBytes !== (target.sizeBytes ?? described.sizeBytes)) {
          throw new S3Error('SignatureDoesNotMatch');
        }
        const { etag, sizeBytes } = await store.receivePart({
          ...target,
          ...described,
          body: bytesOf(request, awaitsContinue ? response : null),
        });
        response.writeHead(200, { ETag: etag, 'Content-Length': 0 }).end();
        logger.debug({ requestId, ...target, sizeBytes }, 'part stored');
      }
    } catch (cause) {
      const error = toS3Error(cause);
      // The client that would read an answer is gone.
      if (request.destroyed && !request.complete) logger.debug({ requestId }, 'part interrupted');
      else if (error.status >= 500) logger.error({ requestId, err: cause }, 'part failed');
      else logger.info({ requestId, code: error.code }, 'part refused');
      refuse(error);
    }
  };
}

function targetOf(request: IncomingMessage, store: FolderObjectStore): PartTarget {
  if (request.method !== 'PUT') throw new S3Error('MethodNotAllowed');
  const verdict = store.partUrls.verify(request.url ?? '');
  if ('refused' in verdict) throw refusalOf(verdict.refused);
  return verdict;
}

function describeBody(request: IncomingMessage, maxPartBytes: number): { sizeBytes: number; md5?: string } {
  const length = request.headers['content-length'];
  // Node's parser has checked that it is a number and holds the body to it.
  if (length === undefined) throw new S3Error('MissingContentLength');
  const sizeBytes = Number(length);
  if (sizeBytes > maxPartBytes) throw new S3Error('EntityTooLarge');
  const digest = request.headers['content-md5'];
  if (digest === undefined) return { sizeBytes };
  const bytes = typeof digest === 'string' ? Buffer.from(digest, 'base64') : Buffer.alloc(0);
  if (bytes.length !== 16) throw new S3Error('InvalidDigest');
  return { sizeBytes, md5: bytes.toString('hex') };
}

/** The body; a client that awaits it is told to go on when the first byte is wanted, so never when it is refused. */
async function* bytesOf(request: IncomingMessage, awaiting: ServerResponse | null): AsyncGenerator<Buffer> {
  awaiting?.writeContinue();
  // The request outlives a failure of ours: the answer goes out on its socket.
  yield* request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
}

function preflight(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers['access-control-request-method'] !== 'PUT') throw new S3Error('AccessForbidden');
  response
    .writeHead(204, {
      'Access-Control-Allow-Methods': 'PUT',
      'Access-Control-Allow-Headers': '*',
      'Access-Control-Max-Age': '3600',
    })
    .end();
}

function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  { error, requestId }: { error: S3Error; requestId: string },
): void {
  if (response.headersSent || response.destroyed) {
    request.destroy();
    return;
  }
  const xml = error.toXml(requestId);
  response.writeHead(error.status, {
    'Content-Type': 'application/xml',
    'Content-Length': Buffer.byteLength(xml),
    ...(error.code === 'MethodNotAllowed' ? { Allow: 'PUT, OPTIONS' } : {}),
    ...(error.code === 'ServiceUnavailable' ? { 'Retry-After': 5 } : {}),
  });
  response.end(xml);
  let discarded = 0;
  request.on('data', (chunk: Buffer) => {
    discarded += chunk.length;
    if (discarded > lingerBytes) request.destroy();
  });
}
