import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { EncoderProcessError, type ProcessLimits, type ProcessProgress } from './encoder-process.ts';
import { createFfmpegProcess } from './fluent-ffmpeg-process.ts';
import { createFfprobe } from './media-probe.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'millrace-process-'));
});
afterEach(() => rm(folder, { recursive: true }));

const limits = (over: Partial<ProcessLimits> = {}): ProcessLimits => ({
  wallMs: 60_000,
  stallMs: 60_000,
  memoryBytes: 2 ** 31,
  outputBytes: 2 ** 30,
  outputFolder: folder,
  ...over,
});
const never = new AbortController().signal;
const ffmpeg = createFfmpegProcess();

/** `seconds` of moving pictures, as fast as they can be made or at their own speed. */
const source = (seconds: number, { paced = false } = {}): string[] => [
  ...['-v', 'error', ...(paced ? ['-re'] : []), '-f', 'lavfi'],
  ...['-i', `testsrc2=size=320x180:rate=25:duration=${seconds}`],
];
const output = (): string[] => ['-c:v', 'libx264', '-preset', 'ultrafast', path.join(folder, 'out.mp4')];

async function failureOf(run: Promise<unknown>): Promise<EncoderProcessError> {
  const error = await run.then(
    () => new Error('it ended well'),
    (reason: unknown) => reason,
  );
  if (error instanceof EncoderProcessError) return error;
  throw error;
}

/** Processes of this name whose parent is `parent`. */
async function children(parent: number, name: string): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
      return status.includes(`Name:\t${name}\n`) && status.includes(`\nPPid:\t${parent}\n`) ? [pid] : [];
    }),
  );
  return found.flat();
}
const child = () => waitFor(async () => (await children(process.pid, 'ffmpeg'))[0], { what: 'ffmpeg' });

describe('ffmpeg', () => {
  it('runs the arguments as they are and tells its progress', async () => {
    const seen: ProcessProgress[] = [];
    await ffmpeg.run([...source(4), '-metadata', 'title=two words', ...output()], limits(), {
      signal: never,
      onProgress: (progress) => seen.push(progress),
    });
    expect(seen.at(-1)).toEqual({ frames: 100, seconds: expect.closeTo(4, 1) });
    let text = '';
    await createFfprobe().run(
      ['-v', 'error', '-show_entries', 'format_tags=title', path.join(folder, 'out.mp4')],
      limits(),
      { onText: (piece) => (text += piece), signal: never },
    );
    expect(text).toContain('TAG:title=two words');
  });

  it('runs with an empty environment and at a low priority', async () => {
    const stop = new AbortController();
    const run = failureOf(
      ffmpeg.run([...source(60, { paced: true }), ...output()], limits(), { signal: stop.signal }),
    );
    const pid = await child();
    expect(await readFile(`/proc/${pid}/environ`, 'utf8')).toBe('');
    const stats = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? [];
    expect(Number(stats[16])).toBeGreaterThan(0);
    stop.abort(new Error('enough'));
    await expect(run).rejects.toThrow('enough');
  });

  it('ends with what ffmpeg said when it refuses', async () => {
    const failure = await failureOf(
      ffmpeg.run(['-v', 'error', '-i', path.join(folder, 'none.mp4'), ...output()], limits(), {
        signal: never,
      }),
    );
    expect(failure.end).toBe('exit');
    expect(failure.stderr).toContain('No such file or directory');
  });

  it('says that ffmpeg was killed by somebody', async () => {
    const run = failureOf(
      ffmpeg.run([...source(60, { paced: true }), ...output()], limits(), { signal: never }),
    );
    process.kill(await child(), 'SIGKILL');
    expect((await run).end).toBe('signal');
  });

  it('kills ffmpeg when the signal aborts, also before it was started', async () => {
    const stop = new AbortController();
    const run = ffmpeg.run([...source(60, { paced: true }), ...output()], limits(), { signal: stop.signal });
    const ended = expect(run).rejects.toThrow('deleted');
    const pid = await child();
    stop.abort(new Error('deleted'));
    await ended;
    await expect(stat(`/proc/${pid}`)).rejects.toThrow();

    const early = new AbortController();
    const second = ffmpeg.run([...source(60, { paced: true }), ...output()], limits(), {
      signal: early.signal,
    });
    early.abort(new Error('early'));
    await expect(second).rejects.toThrow('early');
    await expect(
      ffmpeg.run([...source(1), ...output()], limits(), { signal: AbortSignal.abort(new Error('before')) }),
    ).rejects.toThrow('before');
    expect(await children(process.pid, 'ffmpeg')).toEqual([]);
  });

  it.each([
    ['wall', { wallMs: 300 }],
    ['memory', { memoryBytes: 1_000_000 }],
    ['output', { outputBytes: 1_000 }],
  ] as const)('stops at the limit of %s', async (end, over) => {
    const paced = end !== 'output';
    const failure = await failureOf(
      ffmpeg.run([...source(600, { paced }), ...output()], limits(over), { signal: never }),
    );
    expect(failure.end).toBe(end);
    expect(await children(process.pid, 'ffmpeg')).toEqual([]);
  });

  it('stops when nothing gets done, but not while it reads on', async () => {
    // 60 s until the first frame is due.
    const stalled = [
      '-v',
      'error',
      '-re',
      '-itsoffset',
      '60',
      ...source(1, { paced: true }).slice(3),
      ...output(),
    ];
    const failure = await failureOf(ffmpeg.run(stalled, limits({ stallMs: 400 }), { signal: never }));
    expect(failure.end).toBe('stall');
    let position = 0;
    const reading = await failureOf(
      ffmpeg.run(stalled, limits({ stallMs: 400, wallMs: 1_200 }), {
        signal: never,
        inputPosition: () => position++,
      }),
    );
    expect(reading.end).toBe('wall');
  });

  it('dies with its parent, even on kill -9', async () => {
    const module = fileURLToPath(new URL('./fluent-ffmpeg-process.ts', import.meta.url));
    const script = `
      import { createFfmpegProcess } from ${JSON.stringify(module)};
      await createFfmpegProcess().run(${JSON.stringify([...source(60, { paced: true }), ...output()])},
        ${JSON.stringify(limits())}, { signal: new AbortController().signal });`;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'ignore' });
    const exited = once(parent, 'exit');
    const parentId = parent.pid ?? 0;
    const pid = await waitFor(async () => (await children(parentId, 'ffmpeg'))[0], { what: 'ffmpeg' });
    parent.kill('SIGKILL');
    await exited;
    await waitFor(
      () =>
        stat(`/proc/${pid}`).then(
          () => false,
          () => true,
        ),
      { what: 'the end of ffmpeg' },
    );
  });
});

describe('ffprobe', () => {
  const probe = createFfprobe();
  const run = (args: string[], over: Partial<ProcessLimits> = {}, signal = never) => {
    let text = '';
    return probe.run(args, limits(over), { onText: (piece) => (text += piece), signal }).then(() => text);
  };
  const endless = ['-v', 'error', '-f', 'lavfi', '-show_frames', '-i', 'testsrc2=duration=36000'];

  it('says what is wrong with a file', async () => {
    const failure = await failureOf(run(['-v', 'error', path.join(folder, 'none.mp4')]));
    expect(failure).toMatchObject({ end: 'exit', stderr: expect.stringContaining('No such file') });
  });

  it('stops at its limits and when the signal aborts', async () => {
    expect((await failureOf(run(endless, { outputBytes: 10_000 }))).end).toBe('output');
    expect((await failureOf(run(endless, { wallMs: 300 }))).end).toBe('wall');
    const stop = new AbortController();
    const running = expect(run(endless, {}, stop.signal)).rejects.toThrow('deleted');
    await waitFor(() => children(process.pid, 'ffprobe').then((pids) => pids.length > 0));
    stop.abort(new Error('deleted'));
    await running;
    expect(await children(process.pid, 'ffprobe')).toEqual([]);
  });
});
