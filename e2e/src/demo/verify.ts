import { writeFile } from 'node:fs/promises';
import { type PlaybackTokenResource as PlaybackToken, type Video } from '@millrace/contract';
import { decode, probe, type Shown, type Size } from './media.ts';
import { expectEqual, type Report } from './report.ts';
import { type Player, type Walk } from './walk.ts';

/** A rung of the ladder: a quality and the size of its picture. */
interface Rung extends Size {
  quality: string;
}

const boxes = [360, 720, 1080, 1440, 2160];
const even = (size: number): number => Math.max(2, 2 * Math.round(size / 2));

/**
 * What the rung rule promises for a displayed size: each quality whose 16:9 box, turned to the picture's
 * orientation, the picture fills without enlargement; one rendition at its own size when it fills none. Written
 * here once more, apart from the service's planner, so that the demo can disagree with it.
 */
function promisedLadder({ width, height }: Size): Rung[] {
  const rungs = boxes.flatMap((short) => {
    const long = (short * 16) / 9;
    const [boxWidth, boxHeight] = width >= height ? [long, short] : [short, long];
    const scale = Math.min(boxWidth / width, boxHeight / height);
    return scale > 1
      ? []
      : [{ quality: `${short}p`, width: even(width * scale), height: even(height * scale) }];
  });
  return rungs.length > 0 ? rungs : [{ quality: '360p', width: even(width), height: even(height) }];
}

/** Compares what came out with what plays of the source: ladder, shape, pictures, rate, sound, poster. */
export async function verifyWalk(
  report: Report,
  {
    source,
    video,
    walk,
    player,
    token,
  }: { source: string; video: Video; walk: Walk; player: Player; token: PlaybackToken },
): Promise<void> {
  const original = await probe(source);
  const ladder = promisedLadder(original.display);
  await report.check(
    'ladder',
    async () => {
      expectEqual(
        'the list of qualities',
        video.qualities,
        ladder.map((rung) => rung.quality),
      );
      const sizes = [...walk.variants].sort((a, b) => a.width - b.width);
      expectEqual('the number of variants', sizes.length, ladder.length);
      for (const [i, rung] of ladder.entries()) expectNear(rung.quality, sizes[i], rung);
      return Promise.resolve(sizes);
    },
    (sizes) => sizes.map((size) => `${size.width}×${size.height}`).join(', '),
  );
  for (const variant of walk.variants) await verifyVariant(report, source, original, variant);
  await verifySound(report, original, walk);
  await report.check(
    'poster',
    async () => verifyPoster(player, token, source, original),
    (size) => `${size.width}×${size.height}`,
  );
}

const expectNear = (what: string, seen: Size | undefined, expected: Size): void => {
  if (!seen || Math.abs(seen.width - expected.width) > 2 || Math.abs(seen.height - expected.height) > 2) {
    throw new Error(
      `${what} is ${seen?.width ?? 0}×${seen?.height ?? 0}, expected ${expected.width}×${expected.height}`,
    );
  }
};

async function verifyVariant(
  report: Report,
  source: string,
  original: Shown,
  variant: Walk['variants'][number],
): Promise<void> {
  await report.check(
    `picture ${variant.width}×${variant.height}`,
    async () => {
      const { frames, complaints } = await decode(variant.path);
      if (complaints !== '') throw new Error(`ffmpeg complained: ${complaints.slice(0, 500)}`);
      const seen = await probe(variant.path);
      expectEqual('the displayed size', seen.display, { width: variant.width, height: variant.height });
      const rate = variant.frameRate;
      if (!original.variableRate && original.frameRate <= 60 && Math.abs(rate - original.frameRate) > 0.01) {
        throw new Error(`the frame rate is ${rate}, the source has ${original.frameRate}`);
      }
      const plays = await decode(source, { map: `0:${original.index}`, filter: `fps=${rateText(rate)}` });
      if (Math.abs(frames - plays.frames) > 1)
        throw new Error(`${frames} pictures, the source plays ${plays.frames}`);
      if (Math.abs(variant.seconds - frames / rate) > 1.5 / rate) {
        throw new Error(`its playlist lasts ${variant.seconds} s for ${frames} pictures`);
      }
      return { frames, rate };
    },
    ({ frames, rate }) => `${frames} pictures at ${rate}, ${variant.segments} segments, ${variant.codecs}`,
  );
}

/** FRAME-RATE has three decimals; the rates of television are exact fractions. */
const rateText = (rate: number): string => {
  const whole = Math.round(rate);
  return Math.abs(rate - (whole * 1000) / 1001) < 0.002 ? `${whole * 1000}/1001` : String(rate);
};

async function verifySound(report: Report, original: Shown, walk: Walk): Promise<void> {
  await report.check(
    'sound',
    async () => {
      expectEqual('having sound', walk.audio.length > 0, original.hasSound);
      for (const track of walk.audio) {
        const { complaints } = await decode(track.path, { map: '0:a:0' });
        if (complaints !== '') throw new Error(`ffmpeg complained: ${complaints.slice(0, 500)}`);
      }
      return walk.audio;
    },
    (audio) =>
      audio.length === 0
        ? 'none, as in the source'
        : audio.map((track) => `${track.seconds.toFixed(2)} s`).join(', '),
  );
}

async function verifyPoster(
  player: Player,
  token: PlaybackToken,
  source: string,
  original: Shown,
): Promise<Size> {
  const path = `${source}.poster.jpg`;
  await writeFile(path, await player.get(token.thumbnailUrl));
  const { display } = await probe(path);
  const shape = (size: Size): number => size.width / size.height;
  if (Math.abs(shape(display) / shape(original.display) - 1) > 0.03) {
    throw new Error(`its shape is ${display.width}×${display.height}`);
  }
  return display;
}
