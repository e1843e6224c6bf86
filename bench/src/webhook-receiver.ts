/**
 * A receiver in a process of its own, so that it shares no event loop with what is measured. Answers 204 at once;
 * below /hang it never answers. On `report` it sends its parent how many requests came since the last report, and
 * how long after the instant in their bodies (`at`, milliseconds).
 */
import { createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import { type ReceiverReport } from './webhook-receiver-process.ts';

const at = Buffer.from('"at":');
let report: ReceiverReport = { requests: 0, latencies: [] };

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    if (request.url?.startsWith('/hang') === true) return;
    response.writeHead(204).end();
    report.requests += 1;
    const body = Buffer.concat(chunks);
    const place = body.indexOf(at);
    if (place < 0) return;
    const sentAt = Number.parseFloat(body.toString('latin1', place + at.length, place + at.length + 20));
    report.latencies.push(performance.timeOrigin + performance.now() - sentAt);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.on('message', () => {
  process.send?.(report);
  report = { requests: 0, latencies: [] };
});
process.on('disconnect', () => process.exit());
