import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type DeliveryIndex, type DeliveryTrack } from '@millrace/contract';

/** A short film as an encode leaves it: objects by key, and the index that says where every byte lies. */
export interface Film {
  indexKey: string;
  index: DeliveryIndex;
  objects: Map<string, Buffer>;
}

const run = promisify(execFile);
const prefix = 'encodes/film';
const segmentSeconds = 2;

/** Moving pictures and a tone in two qualities and one sound track, in CMAF segments of 2 s. */
export async function makeFilm(videoId: string, seconds: number): Promise<Film> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-film-'));
  try {
    const objects = new Map<string, Buffer>();
    const track = async (
      name: string,
      args: readonly string[],
      timescale: number,
    ): Promise<DeliveryTrack> => {
      const playlist = join(folder, `${name}.m3u8`);
      await run('ffmpeg', [
        ...['-v', 'error', ...args, '-t', String(seconds), '-f', 'hls', '-hls_time', String(segmentSeconds)],
        ...['-hls_playlist_type', 'vod', '-hls_segment_type', 'fmp4', '-hls_flags', 'single_file', playlist],
      ]);
      const key = `${prefix}/${name}.mp4`;
      const bytes = await readFile(join(folder, `${name}.m4s`));
      objects.set(key, bytes);
      return trackOf(key, await readFile(playlist, 'utf8'), timescale, bytes.length / seconds);
    };
    const picture = (size: string): string[] => [
      ...['-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=15`, '-c:v', 'libx264', '-preset', 'ultrafast'],
      ...['-profile:v', 'baseline', '-level', '3.0', '-pix_fmt', 'yuv420p'],
      ...['-g', String(15 * segmentSeconds), '-keyint_min', '30', '-sc_threshold', '0'],
    ];
    const tone = ['-f', 'lavfi', '-i', 'sine=frequency=330:sample_rate=48000', '-c:a', 'aac'];
    const [small, large, sound] = [
      await track('360p', picture('320x180'), 15_360),
      await track('720p', picture('640x360'), 15_360),
      await track('audio', tone, 48_000),
    ];
    const poster = join(folder, 'poster.jpg');
    await run('ffmpeg', [
      '-v',
      'error',
      '-f',
      'lavfi',
      '-i',
      'testsrc2=size=320x180',
      '-frames:v',
      '1',
      poster,
    ]);
    const image = await readFile(poster);
    objects.set(`${prefix}/poster.jpg`, image);
    const codec = 'avc1.42c01e';
    const index: DeliveryIndex = {
      ...{ v: 1, videoId, durationMs: seconds * 1_000 },
      renditions: [
        { ...small, codec, quality: '360p', width: 320, height: 180, frameRate: '15/1' },
        { ...large, codec, quality: '720p', width: 640, height: 360, frameRate: '15/1' },
      ],
      audio: [{ ...sound, codec: 'mp4a.40.2', name: 'Tone', language: 'en', channels: 1 }],
      files: {
        'poster.jpg': { key: `${prefix}/poster.jpg`, bytes: image.length, contentType: 'image/jpeg' },
      },
    };
    return { indexKey: `${prefix}/index.json`, index, objects };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Takes the byte ranges out of ffmpeg's playlist. */
function trackOf(key: string, playlist: string, timescale: number, bytesPerSecond: number): DeliveryTrack {
  const map = /#EXT-X-MAP:.*BYTERANGE="(\d+)@(\d+)"/.exec(playlist);
  const parts = [...playlist.matchAll(/#EXTINF:([\d.]+),\s+#EXT-X-BYTERANGE:(\d+)@(\d+)/g)];
  return {
    ...{ timescale, objects: [key], codec: '' },
    init: [0, Number(map?.[2]), Number(map?.[1])],
    segments: parts.map(([, duration, bytes, offset]) => [
      ...([0, Number(offset), Number(bytes)] as const),
      ...([Math.round(Number(duration) * timescale), 1_000] as const),
    ]),
    peakBandwidth: Math.ceil(bytesPerSecond * 12),
    averageBandwidth: Math.ceil(bytesPerSecond * 8),
  };
}
