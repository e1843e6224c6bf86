import { context, isSpanContextValid, trace } from '@opentelemetry/api';

/**
 * The current span as a W3C `traceparent`, for the headers of what leaves this process later (outbox rows);
 * undefined outside any span or without a tracer.
 */
export function currentTraceparent(): string | undefined {
  const span = trace.getSpanContext(context.active());
  if (span === undefined || !isSpanContextValid(span)) return undefined;
  return `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, '0')}`;
}
