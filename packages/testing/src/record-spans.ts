import { startSdk } from '@millrace/platform/telemetry';
import { context, propagation, type SpanKind, type SpanStatus, trace } from '@opentelemetry/api';
import { InMemorySpanExporter, SimpleSpanProcessor, type ReadableSpan } from '@opentelemetry/sdk-trace';

/** A span that has ended. */
export interface RecordedSpan {
  name: string;
  kind: SpanKind;
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  attributes: Readonly<Record<string, unknown>>;
  status: SpanStatus;
  durationMs: number;
}

export interface SpanRecorder {
  /** In the order of their ends. */
  ended(): Promise<RecordedSpan[]>;
  /** Stops tracing in this process. */
  stop(): Promise<void>;
}

/** Traces this process by the real SDK, into memory. One recorder at a time. */
export function recordSpans(): SpanRecorder {
  const exporter = new InMemorySpanExporter();
  const processor = new SimpleSpanProcessor({ exporter });
  const sdk = startSdk('test', { spanProcessors: [processor] });
  return {
    ended: async () => {
      await processor.forceFlush();
      return exporter.getFinishedSpans().map(recorded);
    },
    stop: async () => {
      await sdk.stop();
      trace.disable();
      context.disable();
      propagation.disable();
    },
  };
}

function recorded(span: ReadableSpan): RecordedSpan {
  const { traceId, spanId } = span.spanContext();
  const [seconds, nanoseconds] = span.duration;
  return {
    ...{ name: span.name, kind: span.kind, attributes: span.attributes, status: span.status },
    ...{ traceId, spanId, parentSpanId: span.parentSpanContext?.spanId },
    durationMs: seconds * 1_000 + nanoseconds / 1e6,
  };
}
