import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Film } from './uploader.ts';

const seconds = 4;

/** Of 4 s at 360p, and what is none. */
export async function makeFilms(): Promise<Record<'good' | 'text' | 'sound', Film>> {
  const [clip, sound] = await Promise.all([
    make('-f', 'lavfi', '-i', `testsrc2=s=640x360:r=25:d=${seconds}`, ...tone, ...picture),
    make(...tone),
  ]);
  return {
    good: { body: clip, expected: 'ready' },
    text: { body: Buffer.from('This is no film.'), expected: 'invalid_file' },
    sound: { body: sound, expected: 'no_video_track' },
  };
}

const tone = ['-f', 'lavfi', '-i', `sine=d=${seconds}`];
const picture = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p'];

async function make(...args: string[]): Promise<Buffer<ArrayBuffer>> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-films-'));
  try {
    const path = join(folder, 'film.mp4');
    await promisify(execFile)('ffmpeg', ['-v', 'error', ...args, '-c:a', 'aac', path]);
    return Buffer.from(await readFile(path));
  } finally {
    await rm(folder, { recursive: true });
  }
}
