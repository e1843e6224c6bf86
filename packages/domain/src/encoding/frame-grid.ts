import { type ProbedVideo } from './probe.ts';
import { rational, toNumber } from './rational.ts';
import { type Rational } from './types.ts';

/** The constant rate that a video gets, and whether its source had one. */
export interface FrameGrid {
  rate: Rational;
  /** The source's own rate, before it was divided down to at most 60. */
  sourceRate: Rational;
  variable: boolean;
}

const maxRate = 60;
/** Share of pictures that may fall together on one output frame before a faster rate is taken. */
const maxCollisions = 0.005;

/** Rates that cameras and programs use; a measured rate is taken for the one that it cannot be told from. */
const standardRates: readonly Rational[] = [
  [24000, 1001],
  [30000, 1001],
  [48000, 1001],
  [60000, 1001],
  [120000, 1001],
  [240000, 1001],
  [15000, 1001],
  [25, 2],
  ...[1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 18, 20, 24, 25, 30, 48, 50, 60, 72, 75, 90, 96, 100, 120, 144].map(
    (n): Rational => [n, 1],
  ),
  [200, 1],
  [240, 1],
];

/**
 * The output's rate (contract ENC-006, ENC-007): the source's up to 60, above that a whole fraction of it; a
 * variable rate becomes the nearest constant one that keeps every picture within one frame of its time.
 * Under one picture a second pictures are repeated, so that segments keep their length.
 * `ticks` are the times of the pictures, rising, from the first that decodes.
 */
export function frameGrid(
  video: Pick<ProbedVideo, 'timeBase' | 'declaredRates' | 'fieldPackets'>,
  ticks: readonly number[],
  lastDuration: number,
): FrameGrid {
  const pictures = video.fieldPackets ? ticks.filter((_, i) => i % 2 === 0) : ticks;
  const constant = constantRate(video, pictures, lastDuration);
  const sourceRate = constant ?? variableRate(video, pictures);
  return { rate: withinLimits(sourceRate), sourceRate, variable: constant === null };
}

/** Divides a rate above 60 by a whole number, multiplies one below 1. 60.06 counts as 60. */
function withinLimits(rate: Rational): Rational {
  const value = toNumber(rate);
  if (value > maxRate) return rational(rate[0], rate[1] * Math.ceil(value / (maxRate * 1.01)));
  return value < 1 ? rational(rate[0] * Math.ceil(1 / value), rate[1]) : rate;
}

function constantRate(
  video: Pick<ProbedVideo, 'timeBase' | 'declaredRates'>,
  ticks: readonly number[],
  lastDuration: number,
): Rational | null {
  const usable = video.declaredRates.filter((r) => toNumber(r) <= 1000);
  if (ticks.length < 2) return usable[0] ?? onlyPictureRate(video.timeBase, lastDuration);
  const exact = [...usable, ...standardRates, meanRate(video.timeBase, ticks)]
    .map((rate) => ({ rate, error: gridError(rate, video.timeBase, ticks) }))
    .filter(({ error }) => error !== null)
    .map(({ rate, error }) => ({ rate, value: toNumber(rate), error: error ?? 0 }));
  const lowest = Math.min(...exact.map(({ value }) => value));
  // Short clips cannot tell 29.97 from 30: the declared one wins if it is a usual one, else the closest.
  const alike = exact.filter(({ value }) => value < lowest * 1.005);
  const isStandard = (rate: Rational): boolean =>
    standardRates.some(([n, d]) => n === rate[0] && d === rate[1]);
  const declared = alike.find(({ rate }) => usable.includes(rate) && isStandard(rate));
  const standard = alike.filter(({ rate }) => isStandard(rate)).sort((a, b) => a.error - b.error);
  return (declared ?? standard[0] ?? alike[0])?.rate ?? null;
}

function onlyPictureRate([num, den]: Rational, lastDuration: number): Rational {
  return lastDuration > 0 ? rational(den, num * lastDuration) : [25, 1];
}

/** Pictures over the time from the first to the last. */
function meanRate([num, den]: Rational, ticks: readonly number[]): Rational {
  const span = (ticks.at(-1) ?? 0) - (ticks[0] ?? 0);
  return rational((ticks.length - 1) * den, Math.max(1, span * num));
}

/**
 * Largest distance of a picture from its place on the grid, in frames; null when two pictures share a place
 * or one is further off than the rounding of timestamps explains. Gaps are fine: they are dropped pictures.
 */
function gridError(rate: Rational, timeBase: Rational, ticks: readonly number[]): number | null {
  const framesPerTick = toNumber(rate) * toNumber(timeBase);
  const allowed = Math.min(0.2, Math.max(0.02, framesPerTick * 1.05));
  const first = ticks[0] ?? 0;
  let [previous, worst] = [-1, 0];
  for (const tick of ticks) {
    const at = (tick - first) * framesPerTick;
    const place = Math.round(at);
    worst = Math.max(worst, Math.abs(at - place));
    if (place === previous || worst > allowed) return null;
    previous = place;
  }
  return worst;
}

/** The rate nearest to the mean at which (almost) no two pictures fall on one frame. */
function variableRate(
  video: Pick<ProbedVideo, 'timeBase' | 'declaredRates'>,
  ticks: readonly number[],
): Rational {
  const mean = toNumber(meanRate(video.timeBase, ticks));
  const candidates = [...standardRates, ...video.declaredRates]
    .filter((rate) => toNumber(rate) >= mean * 0.99 && toNumber(rate) <= 300)
    .sort((a, b) => Math.abs(Math.log(toNumber(a) / mean)) - Math.abs(Math.log(toNumber(b) / mean)));
  const fits = candidates.find((rate) => collisions(rate, video.timeBase, ticks) <= maxCollisions);
  return fits ?? [maxRate, 1];
}

function collisions(rate: Rational, timeBase: Rational, ticks: readonly number[]): number {
  const framesPerTick = toNumber(rate) * toNumber(timeBase);
  const first = ticks[0] ?? 0;
  let [previous, shared] = [-1, 0];
  for (const tick of ticks) {
    const place = Math.round((tick - first) * framesPerTick);
    if (place === previous) shared++;
    previous = place;
  }
  return shared / ticks.length;
}
