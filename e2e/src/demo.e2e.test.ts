import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type OutgoingHttpHeaders } from 'node:http';
import { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type StartedStack, startStack } from './demo/stack.ts';

const demo = fileURLToPath(new URL('./demo/main.ts', import.meta.url));

/** What a meddling proxy makes of an answer of the CDN. */
type Meddling = (answer: {
  path: string;
  status: number;
  headers: OutgoingHttpHeaders;
  body: Buffer;
}) => Buffer;

describe('the demo fails when something is wrong', () => {
  let folder: string;
  let clip: string;
  let stack: StartedStack;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-demo-test-'));
    clip = join(folder, 'clip.mp4');
    await promisify(execFile)('ffmpeg', [
      ...['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=s=640x360:r=30:d=2', '-f', 'lavfi', '-i', 'sine=d=2'],
      ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-c:a', 'aac', clip],
    ]);
    stack = await startStack({ dataDir: join(folder, 'data'), signal: new AbortController().signal });
  });
  afterAll(async () => {
    await stack.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** Runs the demo on the clip, with other addresses than the true ones. */
  async function runDemo(
    addresses: Partial<{ api: string; cdn: string }>,
  ): Promise<{ code: number; output: string }> {
    const ready = join(folder, 'ready-elsewhere.json');
    await writeFile(ready, JSON.stringify({ api: stack.api, cdn: stack.cdn, ...addresses }));
    const child = spawn(process.execPath, [demo, clip, '--attach', ready, '--data', join(folder, 'data')]);
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
    const [code] = (await once(child, 'close')) as [number];
    return { code, output };
  }

  /** A port that nobody listens on. */
  async function deadAddress(): Promise<string> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    return `http://127.0.0.1:${port}`;
  }

  /** Runs the demo with a proxy in front of the CDN. */
  async function runBehind(meddle: Meddling): Promise<{ code: number; output: string }> {
    const proxy = createServer((request, response) => {
      const path = request.url ?? '/';
      const headers = Object.fromEntries(
        ['origin', 'range'].flatMap((name) => {
          const value = request.headers[name];
          return typeof value === 'string' ? [[name, value]] : [];
        }),
      );
      void fetch(stack.cdn + path, { headers }).then(async (answer) => {
        const sent: OutgoingHttpHeaders = Object.fromEntries(answer.headers);
        delete sent['content-length'];
        const body = Buffer.from(await answer.arrayBuffer());
        const changed = meddle({ path, status: answer.status, headers: sent, body });
        response.writeHead(answer.status, sent).end(changed);
      });
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    try {
      return await runDemo({ cdn: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
    } finally {
      proxy.closeAllConnections();
      proxy.close();
    }
  }

  it('names the API when nothing listens there', async () => {
    const { code, output } = await runDemo({ api: await deadAddress() });
    expect(output).toContain('FAILED at sign up and verify a domain');
    expect(code).toBe(1);
  });

  it('names the CDN when nothing listens there', async () => {
    const { code, output } = await runDemo({ cdn: await deadAddress() });
    expect(output).toContain('FAILED at walk master, playlists, init and segments');
    expect(code).toBe(1);
  });

  it('notices a segment that is cut short', async () => {
    const { code, output } = await runBehind(({ path, body }) =>
      /360p\/seg-\d+\.m4s/.test(path) ? body.subarray(0, body.length - 500) : body,
    );
    expect(output).toContain('FAILED at picture 640×360');
    expect(code).toBe(1);
  });

  it('notices a refusal without its header', async () => {
    const { code, output } = await runBehind(({ headers, body }) => {
      delete headers['x-svc-error'];
      return body;
    });
    expect(output).toContain('FAILED at refused: no token: X-Svc-Error');
    expect(code).toBe(1);
  });
});
