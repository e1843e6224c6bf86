import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import { z } from 'zod';

/** A span as a collector gets it. */
export interface CollectedSpan {
  /** `service.name` of the process that made it. */
  service: string;
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId: string;
}

export interface TraceCollector {
  /** What makes a process send its traces here. */
  env: Record<string, string>;
  spans(): readonly CollectedSpan[];
  stop(): Promise<void>;
}

/** The part of OTLP in JSON that is looked at (opentelemetry-proto, trace.proto). */
const request = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({
        attributes: z.array(
          z.object({ key: z.string(), value: z.object({ stringValue: z.string().optional() }) }),
        ),
      }),
      scopeSpans: z.array(
        z.object({
          spans: z.array(
            z.object({
              name: z.string(),
              traceId: z.string(),
              spanId: z.string(),
              parentSpanId: z.string().default(''),
            }),
          ),
        }),
      ),
    }),
  ),
});

/** Listens on loopback for what OpenTelemetry's exporter sends. */
export async function startTraceCollector(): Promise<TraceCollector> {
  const spans: CollectedSpan[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      spans.push(...spansOf(JSON.parse(Buffer.concat(chunks).toString('utf8'))));
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '200',
    },
    spans: () => spans,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const spansOf = (body: unknown): CollectedSpan[] =>
  request.parse(body).resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const name = resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? '';
    return scopeSpans.flatMap((scope) => scope.spans.map((span) => ({ service: name, ...span })));
  });
