import {
  type Attributes,
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TimeInput,
  trace,
  type Tracer,
} from '@opentelemetry/api';

/** Trace context as headers of a message or request: `traceparent`, `tracestate`. */
export type TraceHeaders = Readonly<Record<string, string>>;

/**
 * The current span as headers, for what leaves this process now or later (requests, outbox rows, rows that somebody
 * works on); empty outside any span or while nothing is traced.
 */
export function currentTraceHeaders(): Record<string, string> {
  return traceHeadersOf(context.active());
}

/** Ids of the current span for log lines; empty outside any. */
export function currentTraceIds(): { traceId?: string; spanId?: string } {
  const span = trace.getSpanContext(context.active());
  return span === undefined ? {} : { traceId: span.traceId, spanId: span.spanId };
}

export interface SpanSettings {
  kind?: keyof typeof SpanKind;
  /** Low in number of values, as labels are; ids are welcome, tokens and addresses of people are not. */
  attributes?: Attributes;
  /** Headers of the span that this one follows from; the current span unless told. */
  from?: TraceHeaders;
}

const tracer = (): Tracer => trace.getTracer('millrace');

/**
 * Does `work` inside a span, which ends with it. What it rejects with marks the span by its name alone: a message may
 * say more than a trace should. Without a configured exporter this calls `work` and little else.
 */
export async function inSpan<T>(
  name: string,
  settings: SpanSettings,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const parent = parentOf(settings);
  const span = tracer().startSpan(name, optionsOf(settings), parent);
  try {
    return await context.with(trace.setSpan(parent, span), () => work(span));
  } catch (error) {
    markFailed(span, error instanceof Error ? error.name : 'Error');
    throw error;
  } finally {
    span.end();
  }
}

/** Begins a span that counts only once `end` is called. Its headers are for what follows from it. */
export function beginSpan(
  name: string,
  settings: SpanSettings & { startTime: TimeInput },
): { headers: TraceHeaders; end: () => void } {
  const parent = parentOf(settings);
  const span = tracer().startSpan(name, { ...optionsOf(settings), startTime: settings.startTime }, parent);
  return {
    headers: traceHeadersOf(trace.setSpan(parent, span)),
    end: () => {
      span.end();
    },
  };
}

/**
 * Answers a request inside a span that ends when `ended` says so.
 * @param from headers of the caller's span; undefined when the caller is nobody whose word counts: a new trace begins
 */
export function inServerSpan<T>(
  name: string,
  { attributes, from }: { attributes: Attributes; from: TraceHeaders | undefined },
  work: (span: Span) => T,
): T {
  const parent = from === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, from);
  const span = tracer().startSpan(name, { kind: SpanKind.SERVER, attributes }, parent);
  return context.with(trace.setSpan(parent, span), () => work(span));
}

/** Marks a span as failed, by a word that is safe to show. */
export function markFailed(span: Span, message: string): void {
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

const parentOf = ({ from }: SpanSettings): Context =>
  from === undefined ? context.active() : propagation.extract(ROOT_CONTEXT, from);

const optionsOf = ({ kind = 'INTERNAL', attributes = {} }: SpanSettings) => ({
  kind: SpanKind[kind],
  attributes,
});

function traceHeadersOf(of: Context): Record<string, string> {
  const headers: Record<string, string> = {};
  propagation.inject(of, headers);
  return headers;
}
