import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from '@jest/globals';
import { type DeliveryIndex } from '@millrace/contract';
import { type EncodeBench, type EncodeResult } from './encode-bench.ts';
import { decodableSeconds, describeTrack, greyShare, pictures, type Pictures, sound } from './measure.ts';
import { mediaPath, type Pixel, type ReadyCase } from './media-cases.ts';

type Rendition = DeliveryIndex['renditions'][number];

interface Checking {
  bench: EncodeBench;
  /** For what a player fetches. */
  folder: string;
  index: DeliveryIndex;
  expected: ReadyCase;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);
const rateOf = ({ frameRate }: Rendition): number => {
  const [num, den] = frameRate.split('/').map(Number);
  return (num ?? 0) / (den ?? 1);
};

/**
 * Checks a ready encode against what the manifest expects of the file, and against what it expects of every
 * file: the bytes that a player gets are decoded and measured.
 */
export async function checkReady(
  { bench, folder, file }: { bench: EncodeBench; folder: string; file: string },
  result: EncodeResult,
  expected: ReadyCase,
): Promise<void> {
  const { index } = result;
  if (index === null) throw new Error('a ready video has an index');
  const checking = { bench, folder, index, expected };
  expect(result.qualities).toEqual(expected.qualities);
  expect(index.renditions.map(({ quality }) => quality)).toEqual(expected.qualities);
  const wanted =
    expected.duration_s === 'ACTUAL' ? await decodableSeconds(mediaPath(file)) : expected.duration_s;
  expect(Math.abs(index.durationMs / 1000 - wanted)).toBeLessThanOrEqual(expected.duration_tol_s);
  const flashes: number[] = [];
  for (const rendition of index.renditions) flashes.push(await checkRendition(checking, rendition));
  const beeps = await checkSounds(checking);
  if (expected.sync !== undefined) {
    // Of several tracks the default one has the beep, and no other: they are not mixed.
    const [beep = NaN, ...others] = beeps;
    expect(others.every(Number.isNaN)).toBe(true);
    for (const flash of flashes) checkSync(expected.sync, flash, beep);
  }
  await checkPoster(checking);
}

/** Returns the time of the first white picture. */
async function checkRendition(checking: Checking, rendition: Rendition): Promise<number> {
  const { bench, folder, index, expected } = checking;
  const file = path.join(folder, 'rendition.mp4');
  await writeFile(file, await bench.fetch(rendition));
  const { stream, keys } = await describeTrack(file);
  checkSize(rendition, expected.display);
  expect(stream).toMatchObject({
    ...{ codec_name: 'h264', profile: 'High', pix_fmt: 'yuv420p', sample_aspect_ratio: '1:1' },
    ...{ width: rendition.width, height: rendition.height, color_range: 'tv' },
    ...{ color_space: 'bt709', color_transfer: 'bt709', color_primaries: 'bt709' },
  });
  expect(stream.side_data_list).toBeUndefined();
  expect(rendition.codec).toMatch(/^avc1\.6400[0-9a-f]{2}$/);

  const rate = rateOf(rendition);
  expect(rate).toBeLessThanOrEqual(Math.min(60, expected.fps_out_max ?? 60));
  const seconds = rendition.segments.map(([, , , ticks]) => ticks / rendition.timescale);
  expect(seconds.every((each) => each > 0)).toBe(true);
  expect(Math.abs(sum(seconds) - index.durationMs / 1000)).toBeLessThan(0.001);
  expect(rendition.segments.map((segment) => segment[3])).toEqual(
    index.renditions[0]?.segments.map((segment) => segment[3]),
  );
  // Segments begin with key frames, and nothing else is one.
  const starts = seconds.map((_, i) => Math.round(sum(seconds.slice(0, i)) * rate));
  expect(keys.flatMap((key, i) => (key ? [i] : []))).toEqual(starts);

  const shown = await pictures(file);
  expect(shown.count).toBe(Math.round(sum(seconds) * rate));
  checkPixels(expected.pixels, shown, rate);
  if (expected.deinterlace !== undefined) {
    expect(await greyShare(file, rendition.width * rendition.height)).toBeLessThanOrEqual(0.03);
  }
  return shown.firstWhite() / rate;
}

/** No larger than the source, of its shape, even; the manifest allows 2 px for evening and 1 % of the shape. */
function checkSize({ width, height }: Rendition, { w, h }: ReadyCase['display']): void {
  expect([width % 2, height % 2]).toEqual([0, 0]);
  expect(width).toBeLessThanOrEqual(w + 1);
  expect(height).toBeLessThanOrEqual(h + 1);
  const shape = (width / height) * (h / w);
  // A pixel more or less is all that evening does to the shape.
  expect(Math.abs(shape - 1)).toBeLessThanOrEqual(Math.max(0.01, 1 / Math.min(width, height)));
}

function checkPixels(pixels: readonly Pixel[], shown: Pictures, rate: number): void {
  for (const { at_s, x, y, rgb, tol } of pixels) {
    const frame = Math.min(shown.count - 1, Math.floor(at_s * rate + 0.01));
    const seen = shown.at(frame, x, y);
    const far = Math.max(...rgb.map((value, i) => Math.abs(value - (seen[i] ?? 0))));
    expect({ at_s, x, y, seen, far: far <= tol ? 'near' : far }).toEqual({ at_s, x, y, seen, far: 'near' });
  }
}

/** Returns the time of the first beep of each track. */
async function checkSounds({ bench, folder, index, expected }: Checking): Promise<number[]> {
  expect(index.audio.length > 0).toBe(expected.has_audio);
  const beeps: number[] = [];
  for (const track of index.audio) {
    const file = path.join(folder, 'sound.mp4');
    await writeFile(file, await bench.fetch(track));
    const { stream } = await describeTrack(file);
    expect(track.codec).toBe('mp4a.40.2');
    expect(stream).toMatchObject({ codec_name: 'aac', profile: 'LC', channels: track.channels });
    expect([44_100, 48_000]).toContain(stream.sample_rate);
    expect(stream.sample_rate).toBeLessThanOrEqual(expected.audio_rate_out_max ?? 48_000);
    expect(track.channels).toBeLessThanOrEqual(expected.audio_channels_out_max ?? 2);
    expect(track.segments.every((segment) => segment[3] > 0)).toBe(true);
    const heard = await sound(file, stream.sample_rate ?? 0, track.channels);
    // Silence fills up to the picture's end, so that no player waits for sound.
    expect(heard.seconds).toBeGreaterThan(index.durationMs / 1000 - 0.1);
    expect(heard.seconds).toBeLessThan(index.durationMs / 1000 + 0.3);
    expect(heard.soundingSeconds()).toBeGreaterThanOrEqual(expected.sounding_s_min ?? 0);
    beeps.push(heard.firstBeep());
  }
  return beeps;
}

function checkSync(
  { flash_s, beep_s, tol_ms }: NonNullable<ReadyCase['sync']>,
  flash: number,
  beep: number,
): void {
  expect(Math.abs(flash - flash_s)).toBeLessThan(0.25);
  expect(Math.abs(flash - flash_s - (beep - beep_s)) * 1000).toBeLessThanOrEqual(tol_ms);
}

/** Upright and of the right colours: these pictures stand still but for the flash. */
async function checkPoster({ bench, folder, index, expected }: Checking): Promise<void> {
  const poster = index.files['poster.jpg'];
  if (poster === undefined) throw new Error('there is no poster');
  const file = path.join(folder, 'poster.jpg');
  const jpeg = await bench.read(poster.key);
  expect([jpeg.toString('hex', 0, 2), jpeg.toString('hex', jpeg.length - 2)]).toEqual(['ffd8', 'ffd9']);
  await writeFile(file, jpeg);
  const shown = await pictures(file);
  expect(shown.count).toBe(1);
  checkPixels(expected.pixels, shown, 1);
}
