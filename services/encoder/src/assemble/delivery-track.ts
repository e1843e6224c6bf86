import { type DeliveryTrack } from '@millrace/contract';
import { wrongOutput } from '../work/trouble.ts';
import { type StoredTrack } from '../tasks/outputs.ts';

type Segment = DeliveryTrack['segments'][number];

/**
 * Joins the chunks of one rendition or sound track, each an object of its own, into what the CDN serves.
 *
 * @param chunks in their order
 * @throws TaskTroubleError when they do not fit together: other init segments, a gap or overlap between them
 */
export function joinTrack(name: string, chunks: readonly StoredTrack[]): DeliveryTrack {
  const first = chunks[0];
  if (first === undefined) throw wrongOutput(`${name} has no output`);
  let ticks = 0;
  const segments: Segment[] = [];
  for (const [object, chunk] of chunks.entries()) {
    if (chunk.initHash !== first.initHash)
      throw wrongOutput(`${name}: chunk ${object} has another init segment`);
    if (chunk.startTicks !== ticks) {
      throw wrongOutput(`${name}: chunk ${object} begins at tick ${chunk.startTicks}, not ${ticks}`);
    }
    for (const [offset, bytes, duration, keyBytes] of chunk.segments) {
      segments.push([object, offset, bytes, duration, keyBytes]);
      ticks += duration;
    }
  }
  return {
    timescale: first.timescale,
    objects: chunks.map((chunk) => chunk.key),
    init: [0, ...first.init],
    segments,
    codec: first.codec,
    ...bandwidths(segments, first.timescale),
  };
}

/** Sound that is shorter is not worth a request of its own, and some players stumble over it. */
const sliverSeconds = 0.5;

/**
 * Joins the last segment of a sound track with the one before it when it is a sliver: the two lie next to each
 * other in one object, and a segment may have several fragments.
 */
export function mergeSliver(track: DeliveryTrack): DeliveryTrack {
  const last = track.segments.at(-1);
  const before = track.segments.at(-2);
  if (last === undefined || before === undefined || last[3] >= sliverSeconds * track.timescale) return track;
  const joined: Segment = [before[0], before[1], before[2] + last[2], before[3] + last[3], before[4]];
  const segments = [...track.segments.slice(0, -2), joined];
  return { ...track, segments, ...bandwidths(segments, track.timescale) };
}

/**
 * The largest bit rate of any run of segments that lasts from half to one and a half target durations, and the
 * average of all (RFC 8216 §4.3.4.2), in whole bits per second.
 */
export function bandwidths(
  segments: readonly Segment[],
  timescale: number,
): { peakBandwidth: number; averageBandwidth: number } {
  const seconds = segments.map(([, , , ticks]) => ticks / timescale);
  // As the playlist says it: whole seconds, at least one.
  const target = Math.max(1, Math.round(Math.max(...seconds)));
  const rate = (bytes: number, duration: number): number => Math.max(1, Math.ceil((bytes * 8) / duration));
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  const averageBandwidth = rate(sum(segments.map(([, , bytes]) => bytes)), sum(seconds));
  let peak = averageBandwidth;
  for (let from = 0; from < segments.length; from++) {
    let bytes = 0;
    let duration = 0;
    for (let to = from; to < segments.length; to++) {
      bytes += segments[to]?.[2] ?? 0;
      duration += seconds[to] ?? 0;
      if (duration > 1.5 * target) break;
      if (duration >= 0.5 * target) peak = Math.max(peak, rate(bytes, duration));
    }
  }
  return { peakBandwidth: peak, averageBandwidth };
}
