import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { recordSpans, type SpanRecorder } from '@millrace/testing';
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { createLogger } from './logger.ts';
import { beginSpan, currentTraceHeaders, inServerSpan, inSpan } from './trace.ts';

let spans: SpanRecorder;

const caller = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };

describe('traces', () => {
  beforeEach(() => {
    spans = recordSpans();
  });
  afterEach(() => spans.stop());

  it('go on from headers to headers, in the form of W3C Trace Context', async () => {
    const headers = await inSpan('work', { from: caller, kind: 'CONSUMER', attributes: { a: 1 } }, () =>
      Promise.resolve(currentTraceHeaders()),
    );
    const [span] = await spans.ended();
    expect(headers).toEqual({ traceparent: `00-${span?.traceId ?? ''}-${span?.spanId ?? ''}-01` });
    expect(span).toMatchObject({
      ...{ name: 'work', kind: SpanKind.CONSUMER, attributes: { a: 1 } },
      ...{ traceId: '0af7651916cd43dd8448eb211c80319c', parentSpanId: 'b7ad6b7169203331' },
    });
  });

  it('put a span inside the one around it', async () => {
    await inSpan('outer', {}, () => inSpan('inner', {}, () => Promise.resolve()));
    const [inner, outer] = await spans.ended();
    expect(inner).toMatchObject({ traceId: outer?.traceId, parentSpanId: outer?.spanId });
  });

  it('mark what failed by its name, and not by its message', async () => {
    const failing = inSpan('work', {}, () => Promise.reject(new TypeError('token=secret')));
    await expect(failing).rejects.toThrow('token=secret');
    const [span] = await spans.ended();
    expect(span?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'TypeError' });
    expect(JSON.stringify(span)).not.toContain('secret');
  });

  it('count what has waited once it is over', async () => {
    const startTime = new Date(Date.now() - 5_000);
    const { headers, end } = beginSpan('waited', { from: caller, startTime });
    expect(await spans.ended()).toEqual([]);
    end();
    const [span] = await spans.ended();
    expect(headers['traceparent']).toContain(span?.spanId);
    expect(span?.durationMs).toBeGreaterThanOrEqual(5_000);
  });

  it('begin anew for a caller whose word does not count', async () => {
    await inSpan('around', {}, () => {
      inServerSpan('GET /', { attributes: {}, from: undefined }, (span) => span.end());
      return Promise.resolve();
    });
    const [request, around] = await spans.ended();
    expect(request?.parentSpanId).toBeUndefined();
    expect(request?.traceId).not.toBe(around?.traceId);
  });

  it('are in the log lines of their work', async () => {
    const lines: string[] = [];
    const logger = createLogger({ service: 'test', destination: { write: (line) => lines.push(line) } });
    await inSpan('work', { from: caller }, () => {
      logger.info({}, 'inside');
      return Promise.resolve();
    });
    logger.info({}, 'outside');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ traceId: '0af7651916cd43dd8448eb211c80319c' });
    expect(JSON.parse(lines[1] ?? '')).not.toHaveProperty('traceId');
  });
});

it('traces are nothing at all without an exporter', async () => {
  const headers = await inSpan('work', { from: caller }, () => Promise.resolve(currentTraceHeaders()));
  expect(headers).toEqual({});
  expect(beginSpan('waited', { startTime: new Date() }).headers).toEqual({});
});
