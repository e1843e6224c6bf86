import { qualities, type Quality, qualityHeight, withinQuality } from '@millrace/contract';
import { toNumber } from './rational.ts';
import { type ManifestRendition, type Rational } from './types.ts';

interface Size {
  width: number;
  height: number;
}

/** Bits a second that each quality may use at 16:9 and 30 frames a second. */
const maxrates: Record<Quality, number> = {
  '360p': 900_000,
  '720p': 3_200_000,
  '1080p': 5_800_000,
  '1440p': 10_000_000,
  '2160p': 18_000_000,
};
const crf = 23;
const bufferSeconds = 1.5;

const even = (value: number): number => Math.max(2, 2 * Math.round(value / 2));
const evenDown = (value: number): number => Math.max(2, 2 * Math.floor(value / 2));

/**
 * The rung rule (contract ENC-001 to ENC-004): quality Q is the 16:9 box Q·16/9 × Q, turned to the source's
 * orientation; the source has Q when scaling it to fit that box needs no enlargement. `display` is the
 * displayed size, pixel shape and rotation applied. Sizes are even. A source smaller than every box gets one
 * rendition at its own size, named 360p. By rising quality, none above `maxQuality`.
 */
export function ladder(display: Size, maxQuality: Quality): (Size & { quality: Quality })[] {
  const rungs = qualities
    .filter((quality) => withinQuality(quality, maxQuality))
    .flatMap((quality) => {
      const scale = boxScale(display, quality);
      if (scale > 1) return [];
      return { quality, width: even(display.width * scale), height: even(display.height * scale) };
    });
  if (rungs.length > 0) return rungs;
  return [{ quality: '360p', width: evenDown(display.width), height: evenDown(display.height) }];
}

function boxScale({ width, height }: Size, quality: Quality): number {
  const short = qualityHeight(quality);
  const long = (short * 16) / 9;
  return width >= height ? Math.min(long / width, short / height) : Math.min(short / width, long / height);
}

/** Adds rate control to a rung: capped constant quality, the cap following the picture's area and rate. */
export function withRateControl(rung: Size & { quality: Quality }, rate: Rational): ManifestRendition {
  const short = qualityHeight(rung.quality);
  const area = Math.min(1, (rung.width * rung.height * 9) / (short * short * 16));
  const speed = Math.max(0.5, toNumber(rate) / 30);
  const maxrate = Math.max(150_000, Math.round(maxrates[rung.quality] * area ** 0.75 * speed ** 0.6));
  const bufsize = Math.floor(maxrate * bufferSeconds);
  return { ...rung, crf, maxrate, bufsize, level: h264Level(rung, toNumber(rate), maxrate, bufsize) };
}

/** Level × 10, macroblocks a second, macroblocks a frame, decoded picture buffer in macroblocks, kbit/s. */
const levels: readonly (readonly [number, number, number, number, number])[] = [
  [10, 1485, 99, 396, 64],
  [11, 3000, 396, 900, 192],
  [12, 6000, 396, 2376, 384],
  [13, 11_880, 396, 2376, 768],
  [20, 11_880, 396, 2376, 2000],
  [21, 19_800, 792, 4752, 4000],
  [22, 20_250, 1620, 8100, 4000],
  [30, 40_500, 1620, 8100, 10_000],
  [31, 108_000, 3600, 18_000, 14_000],
  [32, 216_000, 5120, 20_480, 20_000],
  [40, 245_760, 8192, 32_768, 20_000],
  [42, 522_240, 8704, 34_816, 50_000],
  [50, 589_824, 22_080, 110_400, 135_000],
  [51, 983_040, 36_864, 184_320, 240_000],
  [52, 2_073_600, 36_864, 184_320, 240_000],
  [60, 4_177_920, 139_264, 696_320, 240_000],
  [61, 8_355_840, 139_264, 696_320, 480_000],
];
/** Frames that the encoder keeps for reference: one, and what reordering needs. */
const bufferedFrames = 4;

/** The lowest H.264 level (High profile) that holds a rendition: Rec. ITU-T H.264 table A-1, §A.3.3. */
function h264Level({ width, height }: Size, rate: number, maxrate: number, bufsize: number): number {
  const [columns, rows] = [Math.ceil(width / 16), Math.ceil(height / 16)];
  const blocks = columns * rows;
  const fits = levels.find(
    ([, perSecond, perFrame, buffer, kbps]) =>
      blocks <= perFrame &&
      Math.max(columns, rows) <= Math.sqrt(8 * perFrame) &&
      blocks * rate <= perSecond &&
      blocks * bufferedFrames <= buffer &&
      maxrate <= kbps * 1250 &&
      bufsize <= kbps * 1250,
  );
  return fits?.[0] ?? 62;
}
