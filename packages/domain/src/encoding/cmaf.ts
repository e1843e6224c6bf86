import {
  type BoxHeader,
  boxHeaderBytes,
  CmafError,
  Fields,
  findBox,
  readBoxes,
  readBoxHeader,
} from './boxes.ts';
import { readInit, type TrackInit } from './cmaf-init.ts';

/** Where bytes come from: a file, an object, a buffer. */
export interface ByteSource {
  size: number;
  /** Resolves to exactly `length` bytes from `offset`. */
  read(offset: number, length: number): Promise<Buffer>;
}

/** One fragment (`moof` and `mdat`): a segment, or a part of one. Offsets count from the file's start. */
export interface CmafFragment {
  offset: number;
  bytes: number;
  /** Decode time of the first sample, in ticks. */
  tfdt: number;
  durationTicks: number;
  samples: number;
  firstSampleIsSync: boolean;
  /** Bytes from the fragment's start to the end of its first sample. */
  keyBytes: number;
}

export interface CmafTrack extends TrackInit {
  /** `ftyp` and `moov`, byte for byte; they are the file's first bytes. */
  initBytes: Buffer;
  fragments: CmafFragment[];
}

/** A `moov` or `moof` above this was not written by the encoder (24 h of 6 s segments need far less). */
const maxHeaderBox = 4 * 1024 * 1024;

/**
 * Indexes a single-track CMAF file as the video and audio tasks write it, reading headers only.
 * @throws CmafError when it is cut off, has several tracks or is another kind of file.
 */
export async function indexCmaf(source: ByteSource): Promise<CmafTrack> {
  let [init, initEnd]: [TrackInit | null, number] = [null, 0];
  let moof: { offset: number; body: Buffer; bytes: number } | null = null;
  const fragments: CmafFragment[] = [];
  for (let at = 0; at < source.size;) {
    const header = await headerAt(source, at);
    if (header.type === 'moov') {
      if (init !== null) throw new CmafError('a second moov');
      init = readInit(await bodyOf(source, at, header));
      initEnd = at + header.bytes;
    } else if (header.type === 'moof') {
      moof = { offset: at, body: await bodyOf(source, at, header), bytes: header.bytes };
    } else if (header.type === 'mdat') {
      if (init === null || moof === null) throw new CmafError('media before its header');
      fragments.push(readFragment(init, moof, header));
      moof = null;
    }
    at += header.bytes;
  }
  if (init === null) throw new CmafError('no moov');
  if (moof !== null) throw new CmafError('a fragment without media');
  return { ...init, initBytes: await source.read(0, initEnd), fragments };
}

async function headerAt(source: ByteSource, at: number): Promise<BoxHeader> {
  const left = source.size - at;
  return readBoxHeader(await source.read(at, Math.min(boxHeaderBytes, left)), left);
}

async function bodyOf(source: ByteSource, at: number, header: BoxHeader): Promise<Buffer> {
  if (header.bytes > maxHeaderBox) throw new CmafError(`${header.type} is too large`);
  return await source.read(at + header.headerBytes, header.bytes - header.headerBytes);
}

interface Defaults {
  duration: number;
  size: number;
  flags: number;
}

function readFragment(
  init: TrackInit,
  moof: { offset: number; body: Buffer; bytes: number },
  mdat: BoxHeader,
): CmafFragment {
  const traf = findBox(moof.body, 'traf');
  const defaults = readTfhd(findBox(traf, 'tfhd'), init);
  const runs = readBoxes(traf).filter((box) => box.type === 'trun');
  const total = { samples: 0, duration: 0, size: 0 };
  let first: { flags: number; size: number } | null = null;
  for (const { body } of runs) {
    const run = readTrun(body, defaults);
    first ??= run.first;
    total.samples += run.samples;
    total.duration += run.duration;
    total.size += run.size;
  }
  if (first === null) throw new CmafError('a fragment without samples');
  if (total.size > mdat.bytes - mdat.headerBytes) throw new CmafError('samples are larger than their media');
  return {
    offset: moof.offset,
    bytes: moof.bytes + mdat.bytes,
    tfdt: readTfdt(findBox(traf, 'tfdt')),
    durationTicks: total.duration,
    samples: total.samples,
    // sample_is_non_sync_sample, ISO 14496-12 §8.8.3.1.
    firstSampleIsSync: (first.flags & 0x10000) === 0,
    keyBytes: moof.bytes + mdat.headerBytes + first.size,
  };
}

function readTfhd(body: Buffer, init: TrackInit): Defaults {
  const fields = new Fields(body);
  const flags = fields.u32() & 0xffffff;
  if (fields.u32() !== init.trackId) throw new CmafError('a fragment of another track');
  if ((flags & 0x1) !== 0) fields.skip(8);
  if ((flags & 0x2) !== 0) fields.skip(4);
  return {
    duration: (flags & 0x8) !== 0 ? fields.u32() : init.defaults.duration,
    size: (flags & 0x10) !== 0 ? fields.u32() : init.defaults.size,
    flags: (flags & 0x20) !== 0 ? fields.u32() : init.defaults.flags,
  };
}

function readTfdt(body: Buffer): number {
  const fields = new Fields(body);
  return fields.u32() >>> 24 === 1 ? fields.u64() : fields.u32();
}

function readTrun(
  body: Buffer,
  defaults: Defaults,
): { samples: number; duration: number; size: number; first: { flags: number; size: number } | null } {
  const fields = new Fields(body);
  const flags = fields.u32() & 0xffffff;
  const samples = fields.u32();
  if ((flags & 0x1) !== 0) fields.skip(4);
  const firstFlags = (flags & 0x4) !== 0 ? fields.u32() : null;
  const perSample = [0x100, 0x200, 0x400, 0x800].filter((bit) => (flags & bit) !== 0).length * 4;
  // A count that the bytes cannot hold would loop for minutes.
  if (perSample > 0 ? samples * perSample > fields.rest().length : samples > 1_000_000) {
    throw new CmafError('more samples than their table holds');
  }
  let first: { flags: number; size: number } | null = null;
  const total = { duration: 0, size: 0 };
  for (let i = 0; i < samples; i++) {
    total.duration += (flags & 0x100) !== 0 ? fields.u32() : defaults.duration;
    const size = (flags & 0x200) !== 0 ? fields.u32() : defaults.size;
    const own = (flags & 0x400) !== 0 ? fields.u32() : defaults.flags;
    if ((flags & 0x800) !== 0) fields.skip(4);
    total.size += size;
    first ??= { flags: firstFlags ?? own, size };
  }
  return { samples, ...total, first };
}

/**
 * Joins the last fragment to the one before when it is shorter than `seconds`: a sliver of sound is not worth
 * a request. Fragments are contiguous, so the joined one is one byte range.
 */
export function mergeSliver(
  fragments: readonly CmafFragment[],
  timescale: number,
  seconds = 0.5,
): CmafFragment[] {
  const [before, last] = fragments.slice(-2);
  if (before === undefined || last === undefined) return [...fragments];
  if (last.durationTicks >= seconds * timescale || before.offset + before.bytes !== last.offset) {
    return [...fragments];
  }
  const joined = {
    ...before,
    bytes: before.bytes + last.bytes,
    durationTicks: before.durationTicks + last.durationTicks,
    samples: before.samples + last.samples,
  };
  return [...fragments.slice(0, -2), joined];
}
