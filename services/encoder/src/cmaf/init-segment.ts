import { bodyAt, boxesIn, MalformedBoxError } from './boxes.ts';

export interface InitSegment {
  timescale: number;
  /** RFC 6381. */
  codec: string;
  /** Null for sound. */
  size: { width: number; height: number } | null;
  /** Of samples that say nothing themselves (`trex`). */
  defaults: SampleDefaults;
}

export interface SampleDefaults {
  duration: number;
  bytes: number;
  flags: number;
}

/** Reads the body of a `moov` with one track of H.264 or AAC. */
export function readInit(moov: Buffer): InitSegment {
  const media = bodyAt(moov, 'trak', 'mdia');
  const trex = bodyAt(moov, 'mvex', 'trex');
  const header = bodyAt(media, 'mdhd');
  return {
    timescale: header.readUInt32BE(header[0] === 1 ? 20 : 12),
    ...readSampleEntry(bodyAt(media, 'minf', 'stbl', 'stsd')),
    defaults: { duration: trex.readUInt32BE(12), bytes: trex.readUInt32BE(16), flags: trex.readUInt32BE(20) },
  };
}

/** `stsd`: version and flags, a count, then the sample entry (ISO/IEC 14496-12 §8.5.2). */
function readSampleEntry(stsd: Buffer): Pick<InitSegment, 'codec' | 'size'> {
  const entries = boxesIn(stsd.subarray(8));
  const entry = entries[0];
  if (entry === undefined || entries.length > 1)
    throw new MalformedBoxError(`${entries.length} sample entries`);
  if (entry.type === 'avc1') {
    // Fixed fields of a visual sample entry, then its boxes; `avcC` begins with version, profile, flags, level.
    const avcc = bodyAt(entry.body.subarray(78), 'avcC');
    return {
      codec: `avc1.${avcc.toString('hex', 1, 4)}`,
      size: { width: entry.body.readUInt16BE(24), height: entry.body.readUInt16BE(26) },
    };
  }
  if (entry.type === 'mp4a') {
    return { codec: `mp4a.${audioObject(bodyAt(entry.body.subarray(28), 'esds'))}`, size: null };
  }
  throw new MalformedBoxError(`a sample entry ${entry.type}`);
}

/** Object type and audio object type of an `esds` (ISO/IEC 14496-1 §7.2.6): `40.2` is AAC-LC. */
function audioObject(esds: Buffer): string {
  let at = 4;
  const enter = (tag: number): number => {
    if (esds[at] !== tag) throw new MalformedBoxError(`a descriptor ${String(esds[at])}, not ${tag}`);
    at += 1;
    // Lengths have seven bits a byte, the eighth says that more follow.
    while ((esds[at] ?? 0) & 0x80) at += 1;
    at += 1;
    return at;
  };
  const es = enter(3);
  const flags = esds[es + 2] ?? 0;
  if (flags & 0xe0) throw new MalformedBoxError('an elementary stream with optional fields');
  at = es + 3;
  const config = enter(4);
  at = config + 13;
  const specific = enter(5);
  const kind = (esds[specific] ?? 0) >> 3;
  return `${(esds[config] ?? 0).toString(16)}.${kind}`;
}
