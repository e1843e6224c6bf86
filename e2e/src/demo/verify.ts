import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Video } from '@millrace/contract';
import {
  comparePictures,
  compareSound,
  distance,
  likeness,
  playedSpans,
  promisedRate,
  spanOf,
} from './compare.ts';
import { promisedLadder } from './ladder.ts';
import { hear, type Pictures, probe, see, type Shown, type Size, type Sound } from './media.ts';
import { expectEqual, type Report } from './report.ts';
import { type Player, type PlayedVariant, type Walk } from './walk.ts';

export interface Verification {
  source: string;
  video: Video;
  walk: Walk;
  player: Player;
  thumbnailUrl: string;
  /** Where files may be written. */
  folder: string;
  signal: AbortSignal;
}

/** Compares what came out with what plays of the source: ladder, shape, pictures, rate, sound, poster. */
export async function verifyWalk(report: Report, given: Verification): Promise<void> {
  const { walk, video, signal } = given;
  const original = await report.check(
    'decode the source',
    () => decodeSource(given.source, signal),
    ({ pictures, sounds }) => `${pictures.times.length} pictures, ${sounds.length} sound`,
  );
  await report.check(
    'ladder',
    async () => verifyLadder(original.shown, video, walk),
    (sizes) => sizes.map((size) => `${size.width}×${size.height}`).join(', '),
  );
  await report.check(
    'playlists',
    async () => verifyPlaylists(walk),
    () => 'target durations, bandwidths, segment borders',
  );
  let start = 0;
  for (const variant of walk.variants) {
    const seen = await report.check(
      `picture ${variant.width}×${variant.height}`,
      () => verifyVariant(original, video, variant, signal),
      ({ frames, apart }) =>
        `${frames} pictures at ${variant.frameRate}, ${variant.segments.length} segments, ${variant.codecs}, ${apart.toFixed(1)}/255 from the source`,
    );
    start = seen.start;
  }
  await report.check(
    'sound',
    () => verifySound(original, walk, start, signal),
    (sounds) => sounds.map((sound) => `${sound.seconds.toFixed(2)} s`).join(', ') || 'none, as in the source',
  );
  await report.check(
    'I-frames',
    () => verifyIframes(walk, signal),
    (count) => `${count} playlists`,
  );
  await report.check(
    'poster',
    () => verifyPoster(given, original),
    (size) => `${size.width}×${size.height}`,
  );
}

interface Original {
  shown: Shown;
  pictures: Pictures;
  /** Those that can be decoded. */
  sounds: Sound[];
}

async function decodeSource(path: string, signal: AbortSignal): Promise<Original> {
  const shown = await probe(path, signal);
  const pictures = await see(path, shown.picture, signal);
  const sounds: Sound[] = [];
  for (const stream of shown.sounds) {
    const sound = await hear(path, stream, signal).catch(() => null);
    if (sound) sounds.push(sound);
  }
  signal.throwIfAborted();
  return { shown, pictures, sounds };
}

function verifyLadder({ display }: Shown, video: Video, walk: Walk): Size[] {
  const ladder = promisedLadder(display);
  const qualities = ladder.map((rung) => rung.quality);
  expectEqual('the list of qualities', video.qualities, qualities);
  const sizes = walk.variants.toSorted((a, b) => a.width - b.width);
  expectEqual('the number of variants', sizes.length, ladder.length);
  for (const [i, rung] of ladder.entries()) {
    const seen = sizes[i] ?? { width: 0, height: 0 };
    if (Math.abs(seen.width - rung.width) <= 2 && Math.abs(seen.height - rung.height) <= 2) continue;
    const [is, expected] = [seen, rung].map(({ width, height }) => `${width}×${height}`);
    throw new Error(`${rung.quality} is ${is ?? ''}, expected ${expected ?? ''}`);
  }
  return sizes;
}

/** What RFC 8216 §4.3.3.1, §4.3.4.2 and §6.2.4 ask of the playlists of a master together. */
function verifyPlaylists({ variants, audio, iframes }: Walk): void {
  const tracks = [...variants, ...audio, ...iframes];
  for (const { segments, targetSeconds } of tracks) {
    expectEqual('a target duration', targetSeconds, tracks[0]?.targetSeconds);
    const longest = Math.max(...segments.map(({ seconds }) => seconds));
    if (!(Math.round(longest) <= targetSeconds))
      throw new Error(`a segment of ${longest} s exceeds ${targetSeconds} s`);
  }
  const peak = (track: { segments: Walk['audio'][number]['segments'] }): number =>
    Math.max(
      ...track.segments
        // A short last segment is not a peak on its own: sets of half a target duration and more count.
        .filter(({ seconds }, i) => i === 0 || seconds * 2 >= (track.segments[0]?.seconds ?? 0))
        .map(({ seconds, bytes }) => (bytes * 8) / seconds),
    );
  const sound = Math.max(0, ...audio.map(peak));
  for (const variant of variants) {
    if (peak(variant) + sound > variant.bandwidth * 1.01) {
      throw new Error(`${variant.width}×${variant.height} needs ${Math.ceil(peak(variant) + sound)} bit/s`);
    }
    const borders = (other: PlayedVariant): string =>
      other.segments.map(({ seconds }) => seconds.toFixed(3)).join(' ');
    expectEqual('the lengths of segments', borders(variant), variants[0] ? borders(variants[0]) : '');
  }
}

async function verifyVariant(
  { shown, pictures, sounds }: Original,
  video: Video,
  variant: PlayedVariant,
  signal: AbortSignal,
): Promise<{ frames: number; apart: number; start: number }> {
  const played = await probe(variant.path, signal);
  const encoded = await see(variant.path, played.picture, signal);
  if (encoded.complaints !== '') throw new Error(`ffmpeg complained: ${encoded.complaints.slice(0, 500)}`);
  expectEqual('the displayed size', played.display, { width: variant.width, height: variant.height });
  const frames = encoded.times.length;
  const rate = (frames - 1) / ((encoded.times.at(-1) ?? 0) - (encoded.times[0] ?? 0)) || variant.frameRate;
  const promised = promisedRate(pictures);
  if (Math.abs(rate - variant.frameRate) > 0.01 || rate < promised.min || rate > promised.max) {
    throw new Error(`${rate} frames a second, stated ${variant.frameRate}, the source: ${promised.text}`);
  }
  const { start } = spanOf(playedSpans(pictures, pictures.jumps ? [] : sounds), frames, rate);
  for (const [what, seconds] of [
    ['its playlist', variant.seconds],
    ['the video', video.durationSeconds ?? 0],
  ] as const) {
    if (Math.abs(seconds - frames / rate) > 1.05 / rate)
      throw new Error(`${what} lasts ${seconds} s for ${frames} pictures`);
  }
  const apart = comparePictures(pictures, encoded, { start, rate, coloursKept: shown.coloursKept });
  return { frames, apart, start };
}

const soundSlackSeconds = 0.25;

async function verifySound(
  { pictures, sounds }: Original,
  walk: Walk,
  start: number,
  signal: AbortSignal,
): Promise<Sound[]> {
  expectEqual('having sound', walk.audio.length > 0, sounds.length > 0);
  const heard: Sound[] = [];
  for (const { path, seconds } of walk.audio) {
    const sound = await hear(path, { index: 0, codec: 'aac' }, signal);
    if (sound.complaints !== '') throw new Error(`ffmpeg complained: ${sound.complaints.slice(0, 500)}`);
    for (const [what, length] of [
      ['its playlist', seconds],
      ['the picture', walk.variants[0]?.seconds ?? 0],
    ] as const) {
      if (Math.abs(sound.seconds - length) > soundSlackSeconds)
        throw new Error(`${sound.seconds} s of sound, ${what} lasts ${length} s`);
    }
    heard.push(sound);
  }
  if (!pictures.jumps) for (const sound of heard) compareWithAny(sounds, sound, start);
  return heard;
}

/** The tracks of an encode may stand in another order. */
function compareWithAny(sounds: readonly Sound[], sound: Sound, start: number): void {
  const problems: unknown[] = [];
  for (const source of sounds) {
    try {
      compareSound(source, sound, start);
      return;
    } catch (error) {
      problems.push(error);
    }
  }
  throw problems[0];
}

async function verifyIframes(walk: Walk, signal: AbortSignal): Promise<number> {
  for (const [i, { path, segments }] of walk.iframes.entries()) {
    expectEqual('the number of I-frames', segments.length, walk.variants[i]?.segments.length);
    const { times } = await see(path, 0, signal);
    expectEqual('the number of pictures in one', times.length, 1);
  }
  return walk.iframes.length;
}

async function verifyPoster(given: Verification, { shown, pictures }: Original): Promise<Size> {
  const path = join(given.folder, 'poster.jpg');
  await writeFile(path, await given.player.get(given.thumbnailUrl));
  const { display } = await probe(path, given.signal);
  const shape = (size: Size): number => size.width / size.height;
  // Sides are even, so that a small picture's shape is a little off.
  if (
    Math.abs(shape(display) / shape(shown.display) - 1) >
    0.01 + 2 / Math.min(display.width, display.height)
  )
    throw new Error(`its shape is ${display.width}×${display.height}`);
  const poster = await see(path, 0, given.signal);
  const nearest = Math.min(...pictures.times.map((_, i) => distance(poster.pixels, 0, pictures.pixels, i)));
  if (poster.complaints !== '' || !(nearest <= likeness(shown.coloursKept))) {
    throw new Error(`it is no picture of the source ${poster.complaints}`);
  }
  return display;
}
