import { type Sniffed, type SourceContainer } from './types.ts';

/** Bytes from the start of a file that `sniffContainer` wants (all of it when it is shorter). */
export const sniffBytes = 4096;

const ascii = (head: Buffer, start: number, end: number): string => head.toString('latin1', start, end);
const starts = (head: Buffer, ...bytes: number[]): boolean => bytes.every((b, i) => head[i] === b);
const video = (container: SourceContainer): Sniffed => ({ kind: 'video', container });

/**
 * Says by its first bytes what a file is: name and declared type are not looked at. Text that a demuxer
 * would follow to other files is told apart, so that it is never opened (contract ENC-019).
 */
export function sniffContainer(head: Buffer): Sniffed {
  if (head.length === 0) return { kind: 'empty' };
  return (
    sniffBoxes(head) ??
    sniffVideo(head) ??
    sniffImage(head) ??
    sniffAudio(head) ??
    sniffText(head) ??
    sniffTransportStream(head) ??
    sniffLooseAudio(head) ?? { kind: 'unknown' }
  );
}

const boxTypes = new Set('ftyp moov mdat free skip wide pnot uuid moof sidx styp pdin junk'.split(' '));
const stillBrands = new Set('avif heic heix heim heis mif1 miaf'.split(' '));

/** ISO base media and QuickTime: the first box's type is at byte 4. */
function sniffBoxes(head: Buffer): Sniffed | null {
  const type = ascii(head, 4, 8);
  if (!boxTypes.has(type)) return null;
  const brand = type === 'ftyp' ? ascii(head, 8, 12) : '';
  if (stillBrands.has(brand)) return { kind: 'image', format: brand };
  if (brand === 'M4A ' || brand === 'M4B ') return { kind: 'audio', format: 'm4a' };
  return video('mp4');
}

function sniffVideo(head: Buffer): Sniffed | null {
  if (starts(head, 0x1a, 0x45, 0xdf, 0xa3)) return video('matroska');
  if (ascii(head, 0, 4) === 'RIFF') return sniffRiff(ascii(head, 8, 12));
  if (ascii(head, 0, 3) === 'FLV') return video('flv');
  if (starts(head, 0, 0, 1, 0xba)) return video('mpegps');
  if (ascii(head, 0, 4) === 'OggS') return sniffOgg(head);
  if (starts(head, 0x30, 0x26, 0xb2, 0x75)) return { kind: 'unsupported', format: 'asf' };
  if (ascii(head, 0, 4) === '.RMF') return { kind: 'unsupported', format: 'realmedia' };
  if (starts(head, 0x06, 0x0e, 0x2b, 0x34)) return { kind: 'unsupported', format: 'mxf' };
  return null;
}

function sniffRiff(type: string): Sniffed | null {
  if (type === 'AVI ') return video('avi');
  if (type === 'WAVE') return { kind: 'audio', format: 'wav' };
  if (type === 'WEBP') return { kind: 'image', format: 'webp' };
  return null;
}

/** An Ogg file without a Theora or Dirac header in its first pages holds sound only. */
function sniffOgg(head: Buffer): Sniffed {
  return head.includes('theora') || head.includes('BBCD')
    ? { kind: 'unsupported', format: 'ogg' }
    : { kind: 'audio', format: 'ogg' };
}

function sniffImage(head: Buffer): Sniffed | null {
  const image = (format: string): Sniffed => ({ kind: 'image', format });
  if (starts(head, 0x89, 0x50, 0x4e, 0x47)) return image('png');
  if (starts(head, 0xff, 0xd8, 0xff)) return image('jpeg');
  if (ascii(head, 0, 4) === 'GIF8') return image('gif');
  if (ascii(head, 0, 2) === 'BM' && head.readUInt16LE(Math.min(6, head.length - 2)) === 0)
    return image('bmp');
  if (starts(head, 0x49, 0x49, 0x2a, 0) || starts(head, 0x4d, 0x4d, 0, 0x2a)) return image('tiff');
  if (ascii(head, 0, 4) === '8BPS') return image('psd');
  if (starts(head, 0, 0, 1, 0) && (head[4] ?? 0) > 0 && head[9] === 0) return image('ico');
  if (/^P[1-7]\s/.test(ascii(head, 0, 3))) return image('pnm');
  if (ascii(head, 4, 8) === 'jP  ' || starts(head, 0xff, 0x4f, 0xff, 0x51)) return image('jpeg2000');
  return starts(head, 0xff, 0x0a) ? image('jxl') : null;
}

function sniffAudio(head: Buffer): Sniffed | null {
  const audio = (format: string): Sniffed => ({ kind: 'audio', format });
  if (ascii(head, 0, 3) === 'ID3') return audio('mp3');
  if (ascii(head, 0, 4) === 'fLaC') return audio('flac');
  if (ascii(head, 0, 4) === 'FORM' && ascii(head, 8, 11) === 'AIF') return audio('aiff');
  if (ascii(head, 0, 5) === '#!AMR') return audio('amr');
  if (ascii(head, 0, 4) === 'caff') return audio('caf');
  if (ascii(head, 0, 4) === 'MThd') return audio('midi');
  return starts(head, 0x0b, 0x77) ? audio('ac3') : null;
}

const references: readonly (readonly [RegExp, string])[] = [
  [/^#EXTM3U/, 'hls'],
  [/^ffconcat/, 'concat'],
  [/<MPD[\s>]/, 'dash'],
  [/<SmoothStreamingMedia[\s>]/, 'smooth streaming'],
  [/^\[playlist\]/i, 'pls'],
  [/^v=0\r?\n/, 'sdp'],
];

/** Text: scripts that name other files, and pictures that are written as text. */
function sniffText(head: Buffer): Sniffed | null {
  const text = head.toString('utf8').replace(/^\uFEFF/, '');
  const reference = references.find(([pattern]) => pattern.test(text.trimStart()));
  if (reference) return { kind: 'reference', format: reference[1] };
  if (/<svg[\s>]/i.test(text)) return { kind: 'image', format: 'svg' };
  if (/^(\/\*[^]*?\*\/\s*)?#define\s+\w+\s+\d+\s*\n\s*#define/.test(text))
    return { kind: 'image', format: 'xbm' };
  return /^\/\* XPM \*\//.test(text) ? { kind: 'image', format: 'xpm' } : null;
}

/** A transport stream has 0x47 each 188 bytes (192 in AVCHD, 204 with error correction), perhaps from later on. */
function sniffTransportStream(head: Buffer): Sniffed | null {
  for (const size of [188, 192, 204]) {
    const packets = Math.min(8, Math.floor(head.length / size) - 1);
    if (packets < 3) continue;
    for (let first = 0; first < size; first++) {
      let hits = 0;
      while (hits < packets && head[first + hits * size] === 0x47) hits++;
      if (hits === packets) return video('mpegts');
    }
  }
  return null;
}

/** MPEG audio and ADTS frames begin with eleven set bits only; two in a row make it sure. */
function sniffLooseAudio(head: Buffer): Sniffed | null {
  if (head.length < 8) return null;
  const header = head.readUInt32BE(0);
  if ((header & 0xfff60000) >>> 0 === 0xfff00000) {
    const size = (header & 3) * 2048 + ((head[4] ?? 0) << 3) + ((head[5] ?? 0) >> 5);
    return isFrameAt(head, size, 0xfff6) ? { kind: 'audio', format: 'aac' } : null;
  }
  const size = mp3FrameBytes(header);
  return size > 0 && isFrameAt(head, size, 0xfffe) ? { kind: 'audio', format: 'mp3' } : null;
}

const isFrameAt = (head: Buffer, offset: number, mask: number): boolean =>
  offset >= 7 &&
  offset + 2 <= head.length &&
  (head.readUInt16BE(offset) & mask) === (head.readUInt16BE(0) & mask);

const layer3Kbps = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0];
const layer3KbpsV2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0];

/** Length of an MPEG-1 or -2 Layer III frame (ISO 11172-3 §2.4.2.3), 0 when the header is none. */
function mp3FrameBytes(header: number): number {
  const version = (header >>> 19) & 3;
  const layer = (header >>> 17) & 3;
  if (header >>> 21 !== 0x7ff || version === 1 || layer !== 1) return 0;
  const rate = [44_100, 48_000, 32_000, 0][(header >>> 10) & 3] ?? 0;
  const kbps = (version === 3 ? layer3Kbps : layer3KbpsV2)[(header >>> 12) & 15] ?? 0;
  if (rate === 0 || kbps === 0) return 0;
  const divisor = version === 3 ? 1 : version === 2 ? 2 : 4;
  const samples = version === 3 ? 144 : 72;
  return Math.floor((samples * kbps * 1000) / (rate / divisor)) + ((header >>> 9) & 1);
}
