import { CmafError, Fields, findBox, readBoxes } from './boxes.ts';

/** What an init segment says of its only track. */
export interface TrackInit {
  trackId: number;
  kind: 'video' | 'audio';
  timescale: number;
  /** RFC 6381: `avc1.64001F`, `mp4a.40.2`. */
  codec: string;
  /** Pixels; 0 for sound. */
  width: number;
  height: number;
  defaults: { duration: number; size: number; flags: number };
}

/** Reads the content of a `moov`. @throws CmafError when it is not one of H.264 or AAC. */
export function readInit(moov: Buffer): TrackInit {
  const trak = findBox(moov, 'trak');
  const trackId = readTrackId(findBox(trak, 'tkhd'));
  const entries = new Fields(findBox(trak, 'mdia', 'minf', 'stbl', 'stsd'));
  entries.skip(4);
  if (entries.u32() !== 1) throw new CmafError('expected one sample description');
  const entry = readBoxes(entries.rest())[0];
  if (entry === undefined) throw new CmafError('no sample description');
  return {
    trackId,
    timescale: readTimescale(findBox(trak, 'mdia', 'mdhd')),
    ...readEntry(entry.type, entry.body),
    defaults: readTrex(findBox(moov, 'mvex', 'trex'), trackId),
  };
}

function readTrackId(tkhd: Buffer): number {
  const fields = new Fields(tkhd);
  return fields.skip(fields.u32() >>> 24 === 1 ? 16 : 8).u32();
}

function readTimescale(mdhd: Buffer): number {
  const fields = new Fields(mdhd);
  const timescale = fields.skip(fields.u32() >>> 24 === 1 ? 16 : 8).u32();
  if (timescale === 0) throw new CmafError('no timescale');
  return timescale;
}

function readTrex(trex: Buffer, trackId: number): TrackInit['defaults'] {
  const fields = new Fields(trex).skip(4);
  if (fields.u32() !== trackId) throw new CmafError('defaults of another track');
  fields.skip(4);
  return { duration: fields.u32(), size: fields.u32(), flags: fields.u32() };
}

type Entry = Pick<TrackInit, 'kind' | 'codec' | 'width' | 'height'>;

function readEntry(type: string, body: Buffer): Entry {
  const fields = new Fields(body);
  if (type === 'avc1') {
    const [width, height] = [fields.skip(24).u16(), fields.u16()];
    return { kind: 'video', codec: avcCodec(findBox(fields.skip(50).rest(), 'avcC')), width, height };
  }
  if (type === 'mp4a') {
    // The entry's channel count is 2 by custom, whatever the sound has.
    return { kind: 'audio', codec: aacCodec(findBox(fields.skip(28).rest(), 'esds')), width: 0, height: 0 };
  }
  throw new CmafError(`unexpected sample description ${JSON.stringify(type)}`);
}

/** Profile, constraints and level; the record (ISO 14496-15 §5.3.3.1) must repeat its SPS. */
function avcCodec(avcC: Buffer): string {
  const fields = new Fields(avcC).skip(1);
  const profile = [fields.u8(), fields.u8(), fields.u8()];
  fields.skip(1);
  if ((fields.u8() & 0x1f) === 0) throw new CmafError('no SPS');
  fields.skip(3);
  const sps = [fields.u8(), fields.u8(), fields.u8()];
  if (profile.join() !== sps.join()) throw new CmafError('avcC and SPS disagree');
  return `avc1.${Buffer.from(profile).toString('hex').toUpperCase()}`;
}

/** The audio object type in the decoder's own description: descriptors 3, 4, 5 (ISO 14496-1 §7.2.6). */
function aacCodec(esds: Buffer): string {
  const es = openDescriptor(new Fields(esds).skip(4), 3);
  es.skip(3);
  const config = openDescriptor(es, 4);
  const objectType = config.u8();
  const specific = openDescriptor(config.skip(12), 5);
  if (objectType !== 0x40) throw new CmafError('not MPEG-4 sound');
  return `mp4a.40.${specific.u8() >>> 3}`;
}

function openDescriptor(fields: Fields, tag: number): Fields {
  if (fields.u8() !== tag) throw new CmafError(`expected descriptor ${tag}`);
  while ((fields.u8() & 0x80) !== 0);
  return fields;
}
