import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { silentLogger, systemClock } from '@millrace/platform';
import { type S3ObjectStoreOptions } from '../s3-object-store.ts';

/** A request as the server saw it, its body read. */
interface Call {
  /** `GET /bucket/key?query`, without what the SDK adds to tell its operations apart. */
  line: string;
  headers: IncomingMessage['headers'];
  body: string;
}

export type Answer = (response: ServerResponse, call: Call) => void | Promise<void>;

export interface ScriptedS3 {
  /** For `createS3ObjectStore`: one try of each request, unless told. */
  options: S3ObjectStoreOptions;
  calls: Call[];
  /** Answers each request, in their order; the last one also answers all that come after. */
  answers: Answer[];
  /** Connections that are open now. */
  connections(): Promise<number>;
  close(): Promise<void>;
}

/** An HTTP server that answers as the test says: for what a real server cannot be brought to do. */
export async function startScriptedS3(): Promise<ScriptedS3> {
  const calls: Call[] = [];
  const script: ScriptedS3 = {
    ...{ calls, answers: [] },
    options: {
      ...{ endpoint: '', bucket: 'bucket', region: 'us-east-1', pathStyle: true },
      credentials: { accessKeyId: 'AKIAEXAMPLE', secretAccessKey: 'not-a-secret' },
      ...{ clock: systemClock, logger: silentLogger, limits: { tries: 1 } },
    },
    connections: () =>
      new Promise((resolve, reject) => {
        server.getConnections((error, count) => {
          if (error) reject(error);
          else resolve(count);
        });
      }),
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = Buffer.concat((await request.toArray()) as Buffer[]).toString('latin1');
    const url = (request.url ?? '').replace(/([?&])x-id=\w+&?/, '$1').replace(/[?&]$/, '');
    const call = { line: `${request.method ?? ''} ${url}`, headers: request.headers, body };
    calls.push(call);
    const next = script.answers.length > 1 ? script.answers.shift() : script.answers[0];
    await next?.(response, call);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  script.options.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return script;
}

const declaration = '<?xml version="1.0" encoding="UTF-8"?>\n';
const namespace = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"';

/** An answer with an XML document, as S3 sends it. */
export const xml =
  (document: string, { status = 200, before = '', after = '' } = {}): Answer =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/xml' });
    response.end(before + declaration + document.replace(/^<(\w+)>/, `<$1 ${namespace}>`) + after);
  };

/** An answer that refuses, with S3's error document. */
export const refusal = (status: number, code: string): Answer =>
  xml(`<Error><Code>${code}</Code><Message>As scripted.</Message></Error>`, { status });

/** An answer without a body. */
export const bare =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(status, headers).end();
  };

/** An answer with the bytes of an object. */
export const bytes =
  (body: Buffer, headers: Record<string, string> = {}, status = 200): Answer =>
  (response) => {
    response.writeHead(status, { etag: '"etag"', 'content-length': body.length, ...headers }).end(body);
  };

/** An answer with a whole XML document. */
export const document =
  (text: string): Answer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'application/xml' }).end(text);
  };
