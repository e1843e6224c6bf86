/**
 * A load generator in a process of its own: kept-alive connections, each with one request at a time, over the targets
 * in turn, as clients of many addresses behind one proxy. Told `{ port, requests, connections, targets }`, it asks and
 * answers how long that took; anything but 200 and the body of the first time ends it.
 */
import { connect } from 'node:net';
import { type BenchTarget } from './api-record.ts';

export interface LoadOrder {
  port: number;
  requests: number;
  connections: number;
  targets: readonly BenchTarget[];
}

/** So many that the limit of a minute stops none of them. */
const clients = 512;
const head = Buffer.from('\r\n\r\n');

/** What each target answered first: both sides answer the same. */
const bodies = new Map<string, string>();

function check(target: BenchTarget, answer: string): void {
  const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
  const first = bodies.get(target.path);
  if (answer.startsWith('HTTP/1.1 200 ') && (first === undefined || first === body)) {
    bodies.set(target.path, body);
    return;
  }
  throw new Error(`${target.path} answered ${answer}\nand first ${first ?? 'nothing'}`);
}

/** Asks over one connection until `next` has no more. */
function ask(port: number, next: () => number | null, targets: readonly BenchTarget[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1').setNoDelay(true).on('error', reject);
    let target: BenchTarget | undefined;
    let came: Buffer = Buffer.alloc(0);
    const sendNext = (): void => {
      const n = next();
      target = n === null ? undefined : targets[n % targets.length];
      if (n === null || target === undefined) {
        socket.end();
        resolve();
        return;
      }
      const client = `10.0.${(n % clients) >> 8}.${n & 255}`;
      socket.write(
        `GET ${target.path} HTTP/1.1\r\nHost: api.example.com\r\nAuthorization: Bearer ${target.bearer}\r\n` +
          `X-Forwarded-For: ${client}\r\nAccept: */*\r\nUser-Agent: bench\r\n\r\n`,
      );
    };
    socket.on('connect', sendNext).on('data', (piece: Buffer) => {
      came = came.length === 0 ? piece : Buffer.concat([came, piece]);
      const end = came.indexOf(head);
      if (end < 0) return;
      const length = /content-length: (\d+)/i.exec(came.toString('latin1', 0, end))?.[1];
      if (came.length < end + head.length + Number(length)) return;
      if (target !== undefined) check(target, came.toString());
      came = Buffer.alloc(0);
      sendNext();
    });
  });
}

process.on('message', (order: LoadOrder) => {
  let asked = 0;
  const next = (): number | null => (asked < order.requests ? asked++ : null);
  const startedAt = performance.now();
  const work = Array.from({ length: order.connections }, () => ask(order.port, next, order.targets));
  void Promise.all(work).then(() => process.send?.(performance.now() - startedAt));
});
process.on('disconnect', () => process.exit());
