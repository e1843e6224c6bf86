import { bytesPerPicture, loudnessBlock, type Pictures, quietest, type Sound } from './media.ts';

/**
 * The frame rates that an encode of these pictures may have: the source's own up to 60, above that a whole
 * fraction; for a variable rate anything from the mean up, since no picture may move by more than a frame.
 */
export function promisedRate({ times, end }: Pictures): { min: number; max: number; text: string } {
  const [first = 0] = times;
  const span = (times.at(-1) ?? first) - first;
  const mean = times.length > 1 ? (times.length - 1) / span : 1 / (end - first);
  const own = steadyRate(times) ?? (times.length === 1 ? mean : null);
  if (own === null) return { min: Math.min(mean, 60) * 0.98, max: 60.1, text: 'variable' };
  // 60.06 pictures a second count as 60: clocks are never exact. Under 1 they are repeated.
  const rate = own > 60.6 ? own / Math.ceil(own / 60.6) : own < 1 ? own * Math.ceil(1 / own) : own;
  // A short clip does not tell 29.97 from 30.
  const slack = Math.max(0.002, 0.5 / times.length);
  return { min: rate * (1 - slack), max: rate * (1 + slack), text: rate.toFixed(3) };
}

/** The one rate at which all pictures are within a fifth of a frame of their places, gaps allowed; else null. */
function steadyRate(times: readonly number[]): number | null {
  const steps = times.slice(1).map((time, i) => time - (times[i] ?? 0));
  if (steps.length === 0) return null;
  const usual = steps.toSorted((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0;
  // Timestamps are rounded, so that a long run measures the step better than one pair of pictures does.
  const places = steps.reduce((sum, step) => sum + Math.round(step / usual), 0);
  const step = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / places;
  const steady = steps.every((one) => {
    const apart = one / step;
    return Math.round(apart) >= 1 && Math.abs(apart - Math.round(apart)) < 0.2;
  });
  return steady ? 1 / step : null;
}

/** From when to when a source plays, in seconds by its own clock. */
interface Span {
  start: number;
  end: number;
}

/** Sound that leads the picture by more plays before it; sound that outlives it by more keeps the last picture. */
const leadSeconds = 0.25;
const tailSeconds = 0.2;

/**
 * What may count as all that plays: the pictures; and with them a sound that begins well before or ends well
 * after them. Both, since cut recordings send some sound ahead that no player plays.
 */
export function playedSpans({ times, end }: Pictures, sounds: readonly Sound[]): Span[] {
  const start = times[0] ?? 0;
  const soundStart = Math.min(start, ...sounds.map((sound) => sound.start));
  const soundEnd = Math.max(end, ...sounds.map((sound) => sound.start + sound.seconds));
  const starts = start - soundStart > leadSeconds ? [start, soundStart] : [start];
  const last = soundEnd - end > tailSeconds ? soundEnd : end;
  return starts.map((from) => ({ start: from, end: last }));
}

/** The span that an encode of so many frames plays, within one frame. @throws Error when it plays none of them */
export function spanOf(spans: readonly Span[], frames: number, rate: number): Span {
  const expected = spans.map(({ start, end }) => (end - start) * rate);
  const at = expected.findIndex((count) => Math.abs(count - frames) <= 1.05);
  const span = spans[at];
  if (span) return span;
  throw new Error(`${frames} pictures at ${rate}, the source plays ${expected.map(Math.round).join(' or ')}`);
}

/** Mean distance of two pictures, 0 to 255. */
export function distance(a: Buffer, i: number, b: Buffer, j: number): number {
  const [from, to] = [i * bytesPerPicture, j * bytesPerPicture];
  let sum = 0;
  for (let k = 0; k < bytesPerPicture; k++) sum += Math.abs((a[from + k] ?? 0) - (b[to + k] ?? 0));
  return sum / bytesPerPicture;
}

/** Other colour matrices, ranges and scalers stay far below the first, tone mapping below the second. */
const sameColours = 24;
const otherColours = 90;
export const likeness = (coloursKept: boolean): number => (coloursKept ? sameColours : otherColours);

/**
 * Compares an encode with its source picture by picture, over windows of about a second: each shows what the source
 * shows then, no more than one frame early or late.
 * @returns the mean distance
 * @throws Error naming the first window that does not
 */
export function comparePictures(
  source: Pictures,
  encoded: Pictures,
  { start, rate, coloursKept }: { start: number; rate: number; coloursKept: boolean },
): number {
  const shownAt = placesOf(source.times, encoded.times.length, (frame) => start + (frame + 0.5) / rate);
  return bestWithin({
    length: encoded.times.length,
    window: Math.max(8, Math.round(rate)),
    reach: 10,
    allowed: 1,
    margin: 1,
    limit: likeness(coloursKept),
    distance: (i, shift) => {
      const place = shownAt[Math.min(Math.max(i + shift, 0), shownAt.length - 1)] ?? 0;
      return distance(encoded.pixels, i, source.pixels, place);
    },
    describe: (i, shift) =>
      shift === null
        ? `the pictures from ${(i / rate).toFixed(2)} s on are not the source's`
        : `the pictures from ${(i / rate).toFixed(2)} s on are ${Math.abs(shift)} frames ${shift < 0 ? 'late' : 'early'}`,
  });
}

/** For each frame the last picture whose time has come. */
function placesOf(times: readonly number[], frames: number, timeOf: (frame: number) => number): number[] {
  let place = 0;
  return Array.from({ length: frames }, (_, frame) => {
    while ((times[place + 1] ?? Infinity) <= timeOf(frame)) place++;
    return place;
  });
}

/**
 * Compares loudness over windows of five seconds: sound is within 40 ms of the source's, which nobody notices.
 * @throws Error naming the first window where it is not
 */
export function compareSound(source: Sound, encoded: Sound, start: number): void {
  // Block i of the encode was heard `offset` blocks later in the source.
  const offset = Math.round((start + encoded.start - source.start) / loudnessBlock);
  const at = (i: number): number => source.loudness[i + offset] ?? quietest;
  bestWithin({
    length: Math.min(encoded.loudness.length, source.loudness.length - offset),
    window: 5 / loudnessBlock,
    reach: 25,
    allowed: 2,
    margin: 0.5,
    limit: 12,
    distance: (i, shift) => Math.abs((encoded.loudness[i] ?? quietest) - at(i + shift)),
    describe: (i, shift) => {
      const from = `the sound from ${(i * loudnessBlock).toFixed(1)} s on`;
      if (shift === null) return `${from} is not the source's`;
      const ms = Math.abs(shift) * loudnessBlock * 1000;
      return `${from} is ${ms} ms ${shift < 0 ? 'late' : 'early'}`;
    },
  });
}

interface Alignment {
  length: number;
  window: number;
  /** Shifts up to here are tried. */
  reach: number;
  /** Shifts up to here are right. */
  allowed: number;
  /** Another shift must be better by this to count: what stands still fits everywhere. */
  margin: number;
  /** Nothing further apart than this is alike. */
  limit: number;
  distance(i: number, shift: number): number;
  /** `shift` is null when nothing fits. */
  describe(i: number, shift: number | null): string;
}

/** @returns the mean distance at the right shifts @throws Error for the first window that fits another shift better, or none */
function bestWithin({ length, window, reach, allowed, margin, limit, ...signal }: Alignment): number {
  let total = 0;
  for (let from = 0; from < length; from += window) {
    const count = Math.min(window, length - from);
    const fit = (shift: number): number => {
      let sum = 0;
      for (let i = from; i < from + count; i++) sum += signal.distance(i, shift);
      return sum / count;
    };
    const shifts = Array.from({ length: 2 * reach + 1 }, (_, i) => ({
      shift: i - reach,
      far: fit(i - reach),
    }));
    const nearest = shifts.toSorted((a, b) => a.far - b.far || Math.abs(a.shift) - Math.abs(b.shift));
    const right = nearest.find(({ shift }) => Math.abs(shift) <= allowed);
    const [best] = nearest;
    if (!right || !best) throw new Error('nothing to compare');
    if (best.far > limit) throw new Error(signal.describe(from, null));
    if (right.far > best.far + margin) throw new Error(signal.describe(from, best.shift));
    if (right.far > limit) throw new Error(signal.describe(from, null));
    total += right.far * count;
  }
  return total / Math.max(1, length);
}
