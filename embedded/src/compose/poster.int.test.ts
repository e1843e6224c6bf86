import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createOperator } from '@millrace/api';
import { type IngestReport, type PlaybackTokenResource, type Upload, type Video } from '@millrace/contract';
import { loadConfig, silentLogger, systemClock } from '@millrace/platform';
import { createDatabase, type Database } from '@millrace/store';
import { waitFor } from '@millrace/testing';
import { embeddedConfig } from '../config.ts';
import { readRunFile } from '../data-folder/run-file.ts';
import { type Embedded, startEmbedded } from './embedded.ts';

const hostname = 'films.example.com';
const patience = { timeoutMs: 50_000 };
const run = promisify(execFile);

/** The real services: what is chosen by the API is made by the encoder, served by the CDN, and swept by the reconciler. */
describe('another poster of a video that plays', () => {
  let folder: string;
  let embedded: Embedded;
  let store: Database;
  let project: string;
  let key: string;
  let film: Buffer<ArrayBuffer>;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-poster-'));
    film = await redThenBlue(join(folder, 'film.mp4'));
    const env = { ENCODER_PRESET: 'ultrafast', LOG_LEVEL: 'error' };
    embedded = await startEmbedded({
      ...{ dataDir: join(folder, 'data'), dev: false, env, config: loadConfig(embeddedConfig, env) },
      ...{ logger: silentLogger, signal: new AbortController().signal },
    });
    const { connectionString = '' } = readRunFile(join(folder, 'data')) ?? {};
    store = createDatabase({ connectionString, logger: silentLogger });
    const operator = createOperator({ store, clock: systemClock });
    const { account } = await operator.createAccount({ name: 'A', email: 'a@example.com', planId: 'pro' });
    const { id: projectId } = await operator.createProject({ accountId: account.id, name: 'P' });
    ({ value: key } = await operator.createApiKey({ projectId, name: 'k', scope: 'full' }));
    await operator.addDomain({ projectId, hostname, verified: true });
    project = `${embedded.ready.api}/v1/projects/${projectId}`;
  });
  afterAll(async () => {
    await store.close();
    await embedded.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function call<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(`${project}/${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    expect(response.status).toBeLessThan(300);
    return (await response.json()) as T;
  }

  async function upload(): Promise<string> {
    const { id, parts, video } = await call<Upload>('POST', 'uploads', {
      ...{ sizeBytes: film.length, contentType: 'video/mp4' },
    });
    const put = await fetch(parts[0]?.url ?? '', { method: 'PUT', body: film });
    const etag = put.headers.get('etag');
    await call('POST', `uploads/${id}/complete`, { parts: [{ partNumber: 1, etag }] });
    await waitFor(async () => (await call<Video>('GET', `videos/${video.id}`)).status === 'ready', {
      ...patience,
      what: 'the encode',
    });
    return video.id;
  }

  interface Served {
    body: Buffer;
    etag: string | null;
  }
  async function serve(url: string): Promise<Served> {
    const response = await fetch(url, { headers: { origin: `https://${hostname}` } });
    expect(response.status).toBe(200);
    return { body: Buffer.from(await response.arrayBuffer()), etag: response.headers.get('etag') };
  }

  /** Files of a name in the object store. */
  const stored = async (name: string): Promise<number> =>
    (await readdir(join(folder, 'data/objects/objects'), { recursive: true })).filter((path) =>
      path.endsWith(name),
    ).length;

  it('is served by the same address, the film goes on as it was, and the old one goes [VID-212, PBT-004, CDN-208]', async () => {
    const videoId = await upload();
    const { playlistUrl = '', thumbnailUrl } = await call<PlaybackTokenResource>(
      'POST',
      `videos/${videoId}/playback-tokens`,
      { domain: hostname },
    );
    const media = ['master.m3u8', '360p/index.m3u8', '360p/init.mp4', '360p/seg-0.m4s', '360p/iframes.m3u8'];
    const played = (): Promise<Served[]> =>
      Promise.all(media.map((path) => serve(playlistUrl.replace('master.m3u8', path))));
    const [before, wasPlayed] = [await serve(thumbnailUrl), await played()];
    expect(await colourOf(before.body, folder)).toBe('red');

    await call('PATCH', `videos/${videoId}`, { posterAtSeconds: 3.5 });
    const after = await waitFor(
      async () => {
        const served = await serve(thumbnailUrl);
        return served.etag === before.etag ? null : served;
      },
      { ...patience, what: 'the new poster' },
    );
    expect(await colourOf(after.body, folder)).toBe('blue');
    expect(await played()).toEqual(wasPlayed);
    const report = await call<IngestReport>('GET', `videos/${videoId}/ingest-report`);
    expect(report.details['poster']).toMatchObject({ state: 'succeeded', atSeconds: 3.5 });

    // What was replaced stays for whoever still goes by it; then, ten minutes later, it goes.
    expect([await stored('poster.jpg'), await stored('index.json')]).toEqual([2, 2]);
    await store.query(
      'update object_prefixes set delete_after = clock_timestamp() where delete_after > clock_timestamp()',
    );
    await waitFor(async () => (await stored('poster.jpg')) + (await stored('index.json')) === 2, {
      ...patience,
      what: 'the sweep',
    });
    expect(await serve(thumbnailUrl)).toEqual(after);
    expect(await played()).toEqual(wasPlayed);
  });
});

async function redThenBlue(file: string): Promise<Buffer<ArrayBuffer>> {
  const colour = (name: string): string[] => [
    ...['-f', 'lavfi', '-i', `color=${name}:size=320x180:rate=25:duration=2`],
  ];
  await run('ffmpeg', [
    ...['-v', 'error', ...colour('red'), ...colour('blue'), '-filter_complex', '[0][1]concat=n=2'],
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', file],
  ]);
  return Buffer.from(await readFile(file));
}

/** Which of the two a picture is. */
async function colourOf(jpeg: Buffer, folder: string): Promise<'red' | 'blue'> {
  const file = join(folder, 'poster.jpg');
  await writeFile(file, jpeg);
  const scaled = ['-v', 'error', '-i', file, '-vf', 'scale=1:1', '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-'];
  const { stdout } = await run('ffmpeg', scaled, { encoding: 'buffer' });
  const [red = 0, , blue = 0] = stdout;
  return red > blue ? 'red' : 'blue';
}
