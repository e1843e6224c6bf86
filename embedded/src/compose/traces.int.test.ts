import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createOperator } from '@millrace/api';
import { loadConfig, silentLogger, systemClock } from '@millrace/platform';
import { createDatabase } from '@millrace/store';
import { type RecordedSpan, recordSpans, type SpanRecorder, waitFor } from '@millrace/testing';
import { embeddedConfig } from '../config.ts';
import { readRunFile } from '../data-folder/run-file.ts';
import { type Embedded, startEmbedded } from './embedded.ts';

const film = new URL('../../../packages/testing/media/short_0_2s.mp4', import.meta.url);

/** The real services, with the real SDK of OpenTelemetry, exporting into memory. */
describe('a trace', () => {
  let folder: string;
  let embedded: Embedded;
  let spans: SpanRecorder;
  let project: string;
  let key: string;
  const events: string[] = [];
  const receiver = createServer((request, response) => {
    request.setEncoding('utf8').on('data', (text: string) => events.push(text));
    request.on('end', () => response.writeHead(204).end());
  });

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-traces-'));
    spans = recordSpans();
    const env = { ENCODER_PRESET: 'ultrafast', LOG_LEVEL: 'error' };
    embedded = await startEmbedded({
      ...{ dataDir: folder, dev: true, env, config: loadConfig(embeddedConfig, env), logger: silentLogger },
      signal: new AbortController().signal,
    });
    await once(receiver.listen(0, '127.0.0.1'), 'listening');
    const store = createDatabase({
      connectionString: readRunFile(folder)?.connectionString ?? '',
      logger: silentLogger,
    });
    const operator = createOperator({ store, clock: systemClock });
    const { account } = await operator.createAccount({ name: 'A', email: 'a@example.com', planId: 'pro' });
    const { id: projectId } = await operator.createProject({ accountId: account.id, name: 'P' });
    ({ value: key } = await operator.createApiKey({ projectId, name: 'k', scope: 'full' }));
    await store.close();
    project = `${embedded.ready.api}/v1/projects/${projectId}`;
  });
  afterAll(async () => {
    await embedded.stop();
    receiver.close();
    await spans.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const call = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${project}/${path}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    expect(response.status).toBeLessThan(300);
    return (await response.json()) as { id: string; parts: { url: string }[] };
  };
  const upload = async (headers: Record<string, string>): Promise<void> => {
    const body = await readFile(film);
    const { id, parts } = await call('uploads', { contentType: 'video/mp4', sizeBytes: body.length });
    const put = await fetch(parts[0]?.url ?? '', { method: 'PUT', body });
    const etag = put.headers.get('etag');
    await call(`uploads/${id}/complete`, { parts: [{ partNumber: 1, etag }] }, headers);
  };

  it('goes from an upload over the log and the encoder to the delivery of its webhook', async () => {
    const { port } = receiver.address() as AddressInfo;
    await call('webhook-endpoints', { url: `http://127.0.0.1:${port}/`, events: ['video.ready'] });
    const stranger = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await upload({ traceparent: stranger });
    const delivery = await waitFor(
      async () => (await spans.ended()).find(({ name }) => name === 'deliver webhook') ?? null,
      { timeoutMs: 50_000 },
    );
    expect(events.join('')).toContain('video.ready');

    // A customer's word does not make it one of his traces.
    expect(stranger).not.toContain(delivery.traceId);
    const ofTrace = (await spans.ended()).filter(({ traceId }) => traceId === delivery.traceId);
    const complete = 'POST /v1/projects/{projectId}/uploads/{uploadId}/complete';
    expect(pathTo(delivery, ofTrace)).toEqual([
      complete,
      'encode assemble',
      'publish millrace.video.events',
      'process millrace.video.events',
      'deliver webhook',
    ]);
    const names = new Set(ofTrace.map(({ name }) => name));
    const encode = ['encode plan', 'encode video', 'encode images'];
    const permits = ['publish millrace.encode.tasks', 'process millrace.encode.tasks'];
    expect([...names]).toEqual(expect.arrayContaining([...encode, ...permits]));
    expect(delivery.attributes).toMatchObject({ attempt: 1, 'http.response.status_code': 204 });
  });
});

/** Names of a span's ancestors, from the root, and its own. */
function pathTo(span: RecordedSpan, spans: readonly RecordedSpan[]): string[] {
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
  return [...(parent === undefined ? [] : pathTo(parent, spans)), span.name];
}
