import { noPackets, type PacketTimes, type ProbeHeader } from './probe.ts';
import { parseRational } from './rational.ts';
import { type SourceContainer } from './types.ts';

export interface PacketScan {
  /** Takes the next piece of ffprobe's standard output, cut anywhere. */
  write(text: string): void;
  /** The times, once the output has ended. */
  end(): { streams: ReadonlyMap<number, PacketTimes>; discontinuous: boolean };
}

/** Above 24 h of 240 pictures a second nothing is a video any more; memory stays bounded. */
const maxPictures = 24 * 3600 * 240;
/** ffmpeg's own thresholds for streams whose clock may jump, in seconds (`-dts_delta_threshold`). */
const jump = { any: 10, backwards: 0.1 } as const;

interface Track {
  picture: boolean;
  secondsPerTick: number;
  reorder: number;
  packets: number;
  withoutPts: number;
  ticks: number[];
  first: number;
  last: number;
  lastDuration: number;
  /** Decoding clock, in seconds: of the latest packet, and expected of the next. */
  dts: number | null;
  nextDts: number;
  listed: number;
  orderly: boolean;
  /** Decoding time of the latest packet as it stands in the file, in ticks. */
  fileDts: number;
  lastKey: number | null;
  longestKeyGap: number;
}

/**
 * Follows the packets of a source as ffprobe lists them with `scanArgs`. Jumps of the clock in transport and
 * program streams are straightened as ffmpeg does when it decodes (`process_input` in ffmpeg.c), since
 * recordings are joined and cut.
 */
export function createPacketScan(container: SourceContainer, header: ProbeHeader): PacketScan {
  const tracks = new Map(header.streams.map((s) => [s.index, newTrack(s)] as const));
  const mayJump = container === 'mpegts' || container === 'mpegps';
  const shift = { seconds: 0, seen: false };
  let rest = '';

  const line = (text: string): void => {
    const [index, ptsText, dtsText, durationText, flags] = text.split(',');
    const track = tracks.get(Number(index));
    if (track === undefined || flags === undefined) return;
    const pts = ticksOf(ptsText);
    const dts = ticksOf(dtsText);
    const duration = ticksOf(durationText) ?? 0;
    if (mayJump) straighten(track, dts ?? pts, duration, shift);
    follow(track, { pts, dts, key: flags.includes('K') });
    if (flags.includes('D')) return;
    const at = pts ?? dts;
    if (at === null) return;
    if (pts === null) track.withoutPts++;
    add(track, at + Math.round(shift.seconds / track.secondsPerTick), duration);
  };

  return {
    write(text) {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const each of lines) line(each);
    },
    end() {
      line(rest);
      rest = '';
      const streams = new Map([...tracks].map(([index, track]) => [index, finish(track)] as const));
      return { streams, discontinuous: shift.seen };
    },
  };
}

function newTrack(s: ProbeHeader['streams'][number]): Track {
  const [num, den] = parseRational(s.time_base) ?? [1, 1000];
  return {
    picture: s.codec_type === 'video',
    secondsPerTick: num / den,
    reorder: s.has_b_frames ?? 0,
    ...{ packets: 0, withoutPts: 0, ticks: [], first: Infinity, last: -Infinity, lastDuration: 0 },
    ...{ dts: null, nextDts: 0 },
    ...{ listed: 0, orderly: true, fileDts: -Infinity, lastKey: null, longestKeyGap: 0 },
  };
}

function ticksOf(text: string | undefined): number | null {
  if (text === undefined || text === '' || text === 'N/A') return null;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : null;
}

/** Moves the common shift when this packet's decoding time leaps against its stream's clock. */
function straighten(
  track: Track,
  dtsTicks: number | null,
  duration: number,
  shift: { seconds: number; seen: boolean },
): void {
  if (dtsTicks === null) return;
  let dts = dtsTicks * track.secondsPerTick + shift.seconds;
  if (track.dts !== null) {
    const delta = dts - track.nextDts;
    if (Math.abs(delta) > jump.any || dts + jump.backwards < track.dts) {
      shift.seconds -= delta;
      shift.seen = true;
      dts = track.nextDts;
    }
  }
  track.dts = dts;
  track.nextDts = dts + duration * track.secondsPerTick;
}

/** Notes how the file orders its packets, and where decoding can begin; hidden packets count. */
function follow(
  track: Track,
  { pts, dts, key }: { pts: number | null; dts: number | null; key: boolean },
): void {
  track.listed++;
  if (pts === null || dts === null || dts <= track.fileDts) track.orderly = false;
  track.fileDts = dts ?? track.fileDts;
  if (!key || pts === null) return;
  if (track.lastKey !== null) track.longestKeyGap = Math.max(track.longestKeyGap, pts - track.lastKey);
  track.lastKey = pts;
}

function add(track: Track, at: number, duration: number): void {
  track.packets++;
  track.first = Math.min(track.first, at);
  if (at >= track.last) {
    track.last = at;
    track.lastDuration = duration;
  }
  if (track.picture && track.ticks.length < maxPictures) track.ticks.push(at);
}

function finish(track: Track): PacketTimes {
  if (track.packets === 0) return noPackets;
  const ticks = risingUnique(track.ticks);
  if (track.withoutPts * 2 > track.packets) delayAsDecoded(ticks, track.reorder);
  const last = ticks.at(-1) ?? track.last;
  const endTick = last + track.lastDuration;
  return {
    packets: track.packets,
    listed: track.listed,
    orderly: track.orderly && (!track.picture || ticks.length === track.packets),
    longestKeyGap: Math.max(track.longestKeyGap, endTick - (track.lastKey ?? -Infinity)),
    ticks,
    lastDuration: track.lastDuration,
    firstTick: ticks[0] ?? track.first,
    endTick,
  };
}

function risingUnique(ticks: number[]): number[] {
  ticks.sort((a, b) => a - b);
  return ticks.filter((tick, i) => i === 0 || tick !== ticks[i - 1]);
}

/**
 * AVI has decoding times only: a picture is shown when the decoder lets it go, `delay` packets later, and
 * the last ones follow at the usual distance.
 */
function delayAsDecoded(ticks: number[], delay: number): void {
  if (delay === 0 || ticks.length <= delay) return;
  ticks.splice(0, delay);
  const first = ticks[0] ?? 0;
  const step = Math.max(1, Math.round(((ticks.at(-1) ?? 0) - first) / Math.max(1, ticks.length - 1)));
  for (let i = 0; i < delay; i++) ticks.push((ticks.at(-1) ?? 0) + step);
}
