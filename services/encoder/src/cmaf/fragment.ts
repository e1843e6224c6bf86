import { bodyAt, boxesIn, MalformedBoxError } from './boxes.ts';
import { type SampleDefaults } from './init-segment.ts';

/** What a `moof` says about its samples. */
export interface Fragment {
  /** Decode time of the first sample, in ticks. */
  startTicks: number;
  /** All samples together, in ticks. */
  ticks: number;
  samples: number;
  /** The first sample is one that decoding can begin at. */
  sync: boolean;
  /** From the `moof`'s first byte to the end of the first sample. */
  keyBytes: number;
  /** From the `moof`'s first byte to the end of the last sample. */
  bytes: number;
}

const has = (flags: number, bit: number): boolean => (flags & bit) !== 0;
const nonSync = 0x1_0000;
/** A segment of seconds has hundreds. */
const mostSamples = 100_000;

/** Reads the body of a `moof` with one track and one run (ISO/IEC 14496-12 §8.8). */
export function readFragment(moof: Buffer, defaults: SampleDefaults): Fragment {
  const traf = bodyAt(moof, 'traf');
  const trackDefaults = readTrackDefaults(bodyAt(traf, 'tfhd'), defaults);
  const runs = boxesIn(traf).filter((box) => box.type === 'trun');
  if (runs[0] === undefined || runs.length > 1)
    throw new MalformedBoxError(`${runs.length} runs in a fragment`);
  const tfdt = bodyAt(traf, 'tfdt');
  const startTicks = tfdt[0] === 1 ? Number(tfdt.readBigUInt64BE(4)) : tfdt.readUInt32BE(4);
  return { startTicks, ...readRun(runs[0].body, trackDefaults) };
}

function readTrackDefaults(tfhd: Buffer, defaults: SampleDefaults): SampleDefaults {
  const flags = tfhd.readUInt32BE(0) & 0xff_ffff;
  if (!has(flags, 0x2_0000)) throw new MalformedBoxError('a fragment whose offsets do not begin at it');
  let at = 8;
  if (has(flags, 0x1)) at += 8;
  if (has(flags, 0x2)) at += 4;
  const take = (bit: number, fallback: number): number => {
    if (!has(flags, bit)) return fallback;
    at += 4;
    return tfhd.readUInt32BE(at - 4);
  };
  return {
    duration: take(0x8, defaults.duration),
    bytes: take(0x10, defaults.bytes),
    flags: take(0x20, defaults.flags),
  };
}

function readRun(trun: Buffer, defaults: SampleDefaults): Omit<Fragment, 'startTicks'> {
  const flags = trun.readUInt32BE(0) & 0xff_ffff;
  const samples = trun.readUInt32BE(4);
  if (!has(flags, 0x1) || samples === 0 || samples > mostSamples) {
    throw new MalformedBoxError(`a run of ${samples} samples`);
  }
  const dataOffset = trun.readInt32BE(8);
  let at = 12;
  let firstFlags = defaults.flags;
  if (has(flags, 0x4)) {
    firstFlags = trun.readUInt32BE(at);
    at += 4;
  }
  let ticks = 0;
  let bytes = 0;
  let firstBytes = 0;
  for (let sample = 0; sample < samples; sample++) {
    const take = (bit: number, fallback: number): number => {
      if (!has(flags, bit)) return fallback;
      at += 4;
      return trun.readUInt32BE(at - 4);
    };
    ticks += take(0x100, defaults.duration);
    bytes += take(0x200, defaults.bytes);
    const own = take(0x400, sample === 0 ? firstFlags : defaults.flags);
    take(0x800, 0);
    if (sample > 0) continue;
    firstBytes = bytes;
    firstFlags = own;
  }
  return {
    ticks,
    samples,
    sync: !has(firstFlags, nonSync),
    keyBytes: dataOffset + firstBytes,
    bytes: dataOffset + bytes,
  };
}
