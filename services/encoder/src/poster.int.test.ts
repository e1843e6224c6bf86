import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { deliveryIndex, type DeliveryIndex } from '@millrace/contract';
import { lockVideo, moveVideo, patchVideo, reapExpiredLeases } from '@millrace/store';
import { waitFor } from '@millrace/testing';
import { createFfmpegProcess } from './process/fluent-ffmpeg-process.ts';
import { createEncodeBench, type EncodeBench } from './testing/encode-bench.ts';
import { mediaPath } from './testing/media-cases.ts';
import { slowPosters } from './testing/paced-encoder.ts';

const run = promisify(execFile);
const fast = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p'];
let folder: string;
let bench: EncodeBench;
/** Whether posters are made slowly. */
let slowly = false;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'millrace-poster-test-'));
  const real = createFfmpegProcess();
  const slow = slowPosters();
  bench = await createEncodeBench(
    { ENCODER_LEASE_MS: '900', ENCODER_PRESET: 'ultrafast' },
    { process: { run: (...given) => (slowly ? slow : real).run(...given) } },
  );
});
afterAll(async () => {
  await bench.close();
  await rm(folder, { recursive: true });
});
afterEach(() => {
  slowly = false;
  bench.objects.interfere = null;
});

async function clip(name: string, ...args: string[]): Promise<Buffer> {
  const file = path.join(folder, name);
  await run('ffmpeg', ['-v', 'error', '-y', ...args, file]);
  return readFile(file);
}

/** One colour after another, each for some seconds. */
async function colours(name: string, parts: readonly (readonly [string, number])[], rate = '25') {
  const inputs = parts.flatMap(([colour, seconds]) => [
    ...['-f', 'lavfi', '-i', `color=${colour}:size=320x180:rate=${rate}:duration=${seconds}`],
  ]);
  const join = parts.map((_, index) => `[${index}]`).join('');
  return clip(name, ...inputs, '-filter_complex', `${join}concat=n=${parts.length}`, ...fast);
}
const three = (): Promise<Buffer> =>
  colours('three.mp4', [
    ['red', 1],
    ['lime', 1],
    ['blue', 4],
  ]);

/** The colour that most of a poster has. */
async function colourOf(index: DeliveryIndex): Promise<string> {
  const poster = path.join(folder, 'poster.jpg');
  await writeFile(poster, await bench.read(index.files['poster.jpg']?.key ?? ''));
  const scaled = [...['-v', 'error', '-i', poster, '-vf', 'scale=1:1'], '-f', 'rawvideo'];
  const { stdout } = await run('ffmpeg', [...scaled, '-pix_fmt', 'rgb24', '-'], { encoding: 'buffer' });
  return ['red', 'green', 'blue'][[...stdout].indexOf(Math.max(...stdout))] ?? '';
}

const small = 64 * 36 * 3;
/** Pictures of a file, small, one after another. */
async function picturesOf(file: string): Promise<Buffer[]> {
  const scaled = ['-v', 'error', '-i', file, '-vf', 'scale=64:36,format=rgb24', '-fps_mode', 'passthrough'];
  const options = { encoding: 'buffer', maxBuffer: 1e9 } as const;
  const { stdout } = await run('ffmpeg', [...scaled, '-f', 'rawvideo', '-'], options);
  return Array.from({ length: stdout.length / small }, (_, n) => stdout.subarray(n * small, (n + 1) * small));
}
const distance = (a: Buffer, b: Buffer): number =>
  a.reduce((sum, value, at) => sum + (value - (b[at] ?? 0)) ** 2, 0);

interface Row {
  status: string;
  indexKey: string;
  jobId: string | null;
  state: string | null;
  report: { failure?: { message: string } } | null;
}
async function rowOf(videoId: string): Promise<Row> {
  const { rows } = await bench.db.query<Row>(
    `select v.status, v.index_key as "indexKey", v.poster_job_id as "jobId", j.state, j.report
     from videos v left join encode_jobs j on j.id = v.poster_job_id where v.id = $1`,
    [videoId],
  );
  return rows[0] as Row;
}
const choose = (videoId: string, posterAtSeconds: number | null): Promise<unknown> =>
  bench.db.transaction(async (tx) => {
    const video = await lockVideo(tx, videoId);
    if (video !== null) await patchVideo(tx, video, { posterAtSeconds });
  });
const settled = (videoId: string): Promise<Row> =>
  waitFor(
    async () => {
      const row = await rowOf(videoId);
      return row.state === 'running' ? null : row;
    },
    { timeoutMs: 50_000, what: 'the end of the poster’s job' },
  );
const indexOf = async ({ indexKey }: Row): Promise<DeliveryIndex> =>
  deliveryIndex.parse(JSON.parse((await bench.read(indexKey)).toString()));

async function ready(source: Buffer, posterAtSeconds: number | null = null) {
  const videoId = await bench.submit(source);
  if (posterAtSeconds !== null) await choose(videoId, posterAtSeconds);
  const { status, index } = await bench.result(videoId);
  if (index === null) throw new Error(`the video is ${status}`);
  return { videoId, index };
}

/** Prefixes of encoded objects that are not given up, and those that an index needs. */
async function kept(videoId: string): Promise<string[]> {
  const { rows } = await bench.db.query<{ prefix: string }>(
    `select prefix from object_prefixes where video_id = $1 and kind = 'attempt' and delete_after is null`,
    [videoId],
  );
  return rows.map(({ prefix }) => prefix).sort();
}
function needed(indexKey: string, index: DeliveryIndex): string[] {
  const tracks = [...index.renditions, ...index.audio];
  const files = Object.values(index.files).map((file) => file.key);
  const keys = [indexKey, ...tracks.flatMap(({ objects }) => objects), ...files];
  return [...new Set(keys.map((key) => `${path.dirname(key)}/`))].sort();
}

/** Has an encoder in a process of its own while `work` goes on. */
async function whileRunning<T>(
  pace: 'slow' | 'fast',
  work: (encoder: ChildProcess) => Promise<T>,
): Promise<T> {
  const script = fileURLToPath(new URL('testing/paced-encoder.ts', import.meta.url));
  const where = [bench.connectionString, bench.objects.root, path.join(folder, 'scratch'), pace];
  const encoder = spawn(process.execPath, [script, ...where], { stdio: ['ignore', 'ignore', 'inherit'] });
  try {
    return await work(encoder);
  } finally {
    encoder.kill('SIGKILL');
  }
}

/** ffmpegs that some process started. */
async function ffmpegsOf(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
      return status.includes('Name:\tffmpeg\n') && status.includes(`\nPPid:\t${parent}\n`) ? [pid] : [];
    }),
  );
  return found.flat();
}
/** The ffmpeg that some process runs, as soon as there is one. */
const ffmpegOf = (parent: number): Promise<number> =>
  waitFor(async () => (await ffmpegsOf(parent))[0], { timeoutMs: 50_000, what: 'an ffmpeg' });
const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('the poster of an encode', () => {
  it.each([
    [0, 'red'],
    [0.99, 'red'],
    [1, 'green'],
    [6, 'blue'],
  ])('shows the moment that was chosen: at %d s, %s [VID-208]', async (atSeconds, colour) => {
    const { index } = await ready(await three(), atSeconds);
    expect(await colourOf(index)).toBe(colour);
  });

  it('shows what has been on the screen for long [VID-208]', async () => {
    const slides: [string, number][] = [
      ['red', 20],
      ['blue', 20],
    ];
    const { index } = await ready(await colours('slides.mp4', slides, '1/20'), 15);
    expect(await colourOf(index)).toBe('red');
  });

  const moving = (seconds: number): string[] => [
    ...['-f', 'lavfi', '-i', `testsrc2=size=320x180:rate=30000/1001:duration=${seconds}`],
  ];
  const longGroups = [
    '-c:v',
    'libx264',
    '-preset',
    'veryfast',
    '-bf',
    '2',
    '-g',
    '150',
    '-pix_fmt',
    'yuv420p',
  ];
  it.each<[string, string, () => string[]]>([
    ['pictures out of order', 'order.mp4', () => [...moving(9), ...longGroups]],
    ['a clock that is late', 'late.ts', () => [...moving(9), ...longGroups, '-output_ts_offset', '3600']],
    ['an edit list', 'edits.mp4', () => ['-ss', '1.3', '-i', path.join(folder, 'order.mp4'), '-c', 'copy']],
    [
      'a rate that varies',
      'varies.mkv',
      () => [...moving(9), '-vf', "select='mod(n,3)*mod(n,7)'", '-fps_mode', 'vfr', ...longGroups],
    ],
  ])('is the very picture that plays at that moment: %s [VID-208]', async (_, name, args) => {
    const { videoId, index } = await ready(await clip(name, ...args()));
    const [rendition] = index.renditions;
    if (rendition === undefined) throw new Error('there is no rendition');
    const played = path.join(folder, 'played.mp4');
    await writeFile(played, await bench.fetch(rendition));
    const pictures = await picturesOf(played);
    const [num = 0, den = 0] = rendition.frameRate.split('/').map(Number);
    for (const share of [0.2, 0.7]) {
      const frame = Math.floor(share * pictures.length);
      await choose(videoId, ((frame + 0.5) * den) / num);
      const after = await indexOf(await settled(videoId));
      const poster = path.join(folder, 'poster.jpg');
      await writeFile(poster, await bench.read(after.files['poster.jpg']?.key ?? ''));
      const [shown = Buffer.alloc(0)] = await picturesOf(poster);
      const distances = pictures.map((picture) => distance(picture, shown));
      // A picture that is shown for several frames is equally near to each.
      expect(distances[frame]).toBeLessThanOrEqual(1.1 * Math.min(...distances));
    }
  });

  it('is the last picture at the very end, of a video too whose end is missing [VID-208]', async () => {
    const { videoId, index } = await ready(await readFile(mediaPath('truncated_tail_faststart.mp4')));
    await choose(videoId, index.durationMs / 1000);
    expect((await settled(videoId)).state).toBe('succeeded');
  });

  it('is of another moment when there is none such, and the report says so', async () => {
    const videoId = await bench.submit(await three());
    await choose(videoId, 60);
    const { status, notes } = await bench.result(videoId);
    expect([status, notes]).toEqual(['ready', expect.arrayContaining(['poster_elsewhere'])]);
    expect((await rowOf(videoId)).jobId).toBeNull();
  });

  it('is made anew when its moment was chosen after its picture was taken [VID-212]', async () => {
    const videoId = await bench.submit(await three());
    bench.objects.interfere = async (method, key) => {
      if (method === 'put' && key.endsWith('index.json')) {
        bench.objects.interfere = null;
        await choose(videoId, 1.5);
      }
    };
    await bench.result(videoId);
    const row = await settled(videoId);
    expect([row.state, await colourOf(await indexOf(row))]).toEqual(['succeeded', 'green']);
  });
});

describe('the poster of a video that plays', () => {
  it('follows its moment; every other byte stays where it is, and nothing is left over [VID-208, VID-212]', async () => {
    const { videoId, index } = await ready(await three());
    const shown: string[] = [];
    for (const atSeconds of [1.5, 0.5, 5.9]) {
      await choose(videoId, atSeconds);
      const row = await settled(videoId);
      expect([row.state, row.status]).toEqual(['succeeded', 'ready']);
      const after = await indexOf(row);
      expect({ ...after, files: {} }).toEqual({ ...index, files: {} });
      expect(await kept(videoId)).toEqual(needed(row.indexKey, after));
      shown.push(await colourOf(after));
    }
    expect(shown).toEqual(['green', 'red', 'blue']);
    await choose(videoId, null);
    const row = await settled(videoId);
    const [first, last] = await Promise.all(
      [index, await indexOf(row)].map(({ files }) => bench.read(files['poster.jpg']?.key ?? '')),
    );
    expect(last).toEqual(first);
  });

  it('stays when its source gives no picture any more; the record says why [VID-214]', async () => {
    const { videoId, index } = await ready(await three());
    const { indexKey } = await rowOf(videoId);
    await bench.objects.objects.put(`videos/${videoId}/original/source`, Buffer.alloc(60_000, 'x1y2'));
    await choose(videoId, 1.5);
    const row = await settled(videoId);
    expect(row).toMatchObject({ status: 'ready', state: 'failed', indexKey });
    expect(row.report?.failure?.message).toContain('stays as it was');
    expect(await kept(videoId)).toEqual(expect.arrayContaining(needed(indexKey, index)));
  });

  it('is the last one chosen: what is made for one before is stopped [VID-213]', async () => {
    const { videoId } = await ready(await three());
    slowly = true;
    await choose(videoId, 5);
    const ffmpeg = await ffmpegOf(process.pid);
    slowly = false;
    await choose(videoId, 1.5);
    const row = await settled(videoId);
    const after = await indexOf(row);
    expect([row.state, await colourOf(after)]).toEqual(['succeeded', 'green']);
    await waitFor(() => !isAlive(ffmpeg), { what: 'the end of ffmpeg' });
    expect(await kept(videoId)).toEqual(needed(row.indexKey, after));
  });

  it('ends with its video: ffmpeg is stopped, nothing is kept [VID-117]', async () => {
    const { videoId } = await ready(await three());
    slowly = true;
    await choose(videoId, 5);
    await ffmpegOf(process.pid);
    await bench.db.transaction((tx) =>
      moveVideo(tx, videoId, { type: 'customer_delete' }, { deletedBy: 'customer' }),
    );
    await waitFor(async () => (await ffmpegsOf(process.pid)).length === 0, { what: 'the end of ffmpeg' });
    expect(await kept(videoId)).toEqual([]);
    expect((await rowOf(videoId)).state).toBe('cancelled');
  });

  it('comes though the encoder that makes it is killed with -9 [SVC-003]', async () => {
    const { videoId } = await ready(await three());
    await bench.stopEncoder();
    await choose(videoId, 5);
    await whileRunning('slow', async (doomed) => {
      const ffmpeg = await ffmpegOf(doomed.pid ?? 0);
      doomed.kill('SIGKILL');
      await once(doomed, 'exit');
      await waitFor(() => !isAlive(ffmpeg), { what: 'the end of its ffmpeg' });
    });
    expect(await rowOf(videoId)).toMatchObject({ status: 'ready', state: 'running' });
    await waitFor(async () => (await reapExpiredLeases(bench.db)) > 0, { what: 'the lease to expire' });
    const row = await whileRunning('fast', () => settled(videoId));
    const after = await indexOf(row);
    expect([row.state, await colourOf(after)]).toEqual(['succeeded', 'blue']);
    expect(await kept(videoId)).toEqual(needed(row.indexKey, after));
  });
});
