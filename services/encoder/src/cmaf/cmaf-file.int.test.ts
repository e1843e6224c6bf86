import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MalformedBoxError } from './boxes.ts';
import { readCmafFile } from './cmaf-file.ts';

const run = promisify(execFile);
let folder: string;
let video: string;
let sound: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'millrace-cmaf-'));
  video = path.join(folder, 'video.mp4');
  sound = path.join(folder, 'sound.mp4');
  const fragments = '+empty_moov+default_base_moof+negative_cts_offsets+frag_discont';
  await run('ffmpeg', [
    ...['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=25:duration=5'],
    ...['-f', 'lavfi', '-i', 'sine=duration=5:sample_rate=48000', '-map', '0:v'],
    ...[
      '-c:v',
      'libx264',
      '-profile:v',
      'high',
      '-level:v',
      '3.0',
      '-bf',
      '2',
      '-g',
      '50',
      '-sc_threshold',
      '0',
    ],
    ...['-pix_fmt', 'yuv420p', '-movflags', `${fragments}+frag_keyframe`, '-use_editlist', '0', video],
    ...['-map', '1:a', '-c:a', 'aac', '-movflags', fragments, '-frag_duration', '2000000', sound],
  ]);
});
afterAll(() => rm(folder, { recursive: true }));

interface Packet {
  size: number;
  duration: number;
  key: boolean;
}

/** What ffprobe sees of the same file. */
async function packetsOf(file: string): Promise<Packet[]> {
  const { stdout } = await run('ffprobe', [
    ...['-v', 'error', '-print_format', 'csv=p=0', '-show_entries', 'packet=duration,size,flags', file],
  ]);
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.split(','))
    .map(([duration, size, flags]) => ({
      duration: Number(duration),
      size: Number(size),
      key: flags?.startsWith('K') ?? false,
    }));
}

describe('readCmafFile', () => {
  it('finds the segments of a video as ffprobe sees them', async () => {
    const file = await readCmafFile(video);
    const packets = await packetsOf(video);
    expect(file).toMatchObject({
      codec: 'avc1.64001e',
      size: { width: 320, height: 180 },
      timescale: 12_800,
    });
    expect(file.fragments.map(({ samples, sync }) => [samples, sync])).toEqual([
      [50, true],
      [50, true],
      [25, true],
    ]);
    let at = 0;
    let ticks = 0;
    for (const fragment of file.fragments) {
      const own = packets.slice(at, at + fragment.samples);
      expect(fragment.startTicks).toBe(ticks);
      expect(fragment.ticks).toBe(own.reduce((sum, packet) => sum + packet.duration, 0));
      // The key frame lies first in the media, which lies last in the segment.
      const rest = own.slice(1).reduce((sum, packet) => sum + packet.size, 0);
      expect(fragment.keyBytes).toBe(fragment.bytes - rest);
      expect(own[0]?.key).toBe(true);
      at += fragment.samples;
      ticks += fragment.ticks;
    }
    expect(at).toBe(packets.length);
  });

  it('finds the segments of sound', async () => {
    const file = await readCmafFile(sound);
    const packets = await packetsOf(sound);
    expect(file).toMatchObject({ codec: 'mp4a.40.2', size: null, timescale: 48_000 });
    expect(file.fragments.length).toBeGreaterThan(1);
    expect(file.fragments.reduce((sum, { samples }) => sum + samples, 0)).toBe(packets.length);
    expect(file.fragments.every(({ sync }) => sync)).toBe(true);
  });

  it('gives pieces that lie behind one another, the init segment first', async () => {
    for (const name of [video, sound]) {
      const { initBytes, fragments } = await readCmafFile(name);
      let end = initBytes;
      for (const { offset, bytes } of fragments) {
        expect(offset).toBe(end);
        end = offset + bytes;
      }
      const content = await readFile(name);
      expect(content.toString('latin1', end + 4, end + 8)).toBe('mfra');
    }
  });

  it('answers damage with MalformedBoxError, or with another reading, but never otherwise', async () => {
    const whole = await readFile(video);
    const damaged = path.join(folder, 'damaged.mp4');
    const survives = async (bytes: Buffer): Promise<void> => {
      await writeFile(damaged, bytes);
      await readCmafFile(damaged).catch((error: unknown) => {
        expect(error).toBeInstanceOf(MalformedBoxError);
      });
    };
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: whole.length }), (length) =>
        survives(whole.subarray(0, length)),
      ),
      { numRuns: 50 },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 3_000 }), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        (changes) => {
          const bytes = Buffer.from(whole);
          for (const [at, value] of changes) bytes[at] = value;
          return survives(bytes);
        },
      ),
      {
        numRuns: 300,
        examples: [
          [
            [
              [819, 105],
              [405, 0],
            ],
          ],
        ],
      },
    );
  });

  it('refuses a file that is no fragmented MP4 of one track', async () => {
    const refused = path.join(folder, 'refused.mp4');
    for (const content of ['', 'some text that is longer than a box header']) {
      await writeFile(refused, content);
      await expect(readCmafFile(refused)).rejects.toThrow(MalformedBoxError);
    }
  });
});
