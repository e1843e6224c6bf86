import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';

/** A request as it came. */
export interface Received {
  path: string;
  body: string;
  eventId: string;
  signature: string;
  redelivery: boolean;
}

export type Answer = (response: ServerResponse, request: IncomingMessage) => void;

/** A customer's server: keeps what comes and answers as the test says. */
export interface Receiver {
  url: string;
  received: Received[];
  /** Requests begun and not answered yet, most at once and now. */
  readonly atOnce: { now: number; most: number };
  /** What is answered from now on; 204 unless told. */
  answer: Answer;
  close(): Promise<void>;
}

export const answerStatus =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(status, headers).end();
  };

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const atOnce = { now: 0, most: 0 };
  const server: Server = createServer((request, response) => {
    atOnce.now += 1;
    atOnce.most = Math.max(atOnce.most, atOnce.now);
    response.once('close', () => (atOnce.now -= 1));
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
      const body = Buffer.concat(chunks).toString();
      received.push({
        path: request.url ?? '',
        body,
        eventId: (JSON.parse(body) as { id: string }).id,
        signature: String(request.headers['svc-signature']),
        redelivery: request.headers['svc-redelivery'] === 'true',
      });
      receiver.answer(response, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    atOnce,
    answer: answerStatus(204),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return receiver;
}

/** Whether a receiver that knows the contract's words alone would take it as signed with the secret. */
export function isSignedBy({ signature, body }: Received, secret: string): boolean {
  const [, t, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? [];
  return (
    v1 ===
    createHmac('sha256', secret)
      .update(`${t ?? ''}.${body}`, 'utf8')
      .digest('hex')
  );
}
