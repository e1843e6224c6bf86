/** What a master playlist says of one variant. */
export interface Variant {
  uri: string;
  width: number;
  height: number;
  frameRate: number;
  /** Bits a second that its largest segment, with sound, needs at most. */
  bandwidth: number;
  codecs: string;
}

interface Master {
  variants: Variant[];
  /** Addresses of the sound's playlists. */
  audio: string[];
  /** Addresses of the I-frame playlists. */
  iframes: string[];
}

export interface ByteRange {
  offset: number;
  length: number;
}

interface Media {
  init: string;
  targetSeconds: number;
  segments: { uri: string; seconds: number; range: ByteRange | null }[];
}

/** Reads a master playlist (RFC 8216 §4.3.4), only what a player of this service needs. @throws Error when it is none */
export function parseMaster(text: string): Master {
  const lines = linesOf(text);
  const variants = lines.flatMap((line, i) =>
    line.startsWith('#EXT-X-STREAM-INF:') ? [variantOf(line, lines[i + 1])] : [],
  );
  if (variants.length === 0) throw new Error('the master playlist lists no variant');
  const audio = lines
    .filter((line) => line.startsWith('#EXT-X-MEDIA:') && attribute(line, 'TYPE') === 'AUDIO')
    .map((line) => required(line, 'URI'));
  const iframes = lines
    .filter((line) => line.startsWith('#EXT-X-I-FRAME-STREAM-INF:'))
    .map((line) => required(line, 'URI'));
  return { variants, audio, iframes };
}

function variantOf(line: string, uri: string | undefined): Variant {
  if (uri === undefined || uri.startsWith('#')) throw new Error(`no address after ${line}`);
  const [width = NaN, height = NaN] = required(line, 'RESOLUTION').split('x').map(Number);
  return {
    uri,
    width,
    height,
    frameRate: Number(required(line, 'FRAME-RATE')),
    bandwidth: Number(required(line, 'BANDWIDTH')),
    codecs: required(line, 'CODECS'),
  };
}

/** Reads a media playlist of a whole video (RFC 8216 §4.3.3). @throws Error when it is none, or does not end */
export function parseMedia(text: string): Media {
  const lines = linesOf(text);
  if (!lines.includes('#EXT-X-ENDLIST')) throw new Error('the playlist does not end');
  const map = lines.find((line) => line.startsWith('#EXT-X-MAP:'));
  if (map === undefined) throw new Error('the playlist names no init segment');
  const segments: Media['segments'] = [];
  let seconds = NaN;
  let range: ByteRange | null = null;
  for (const line of lines) {
    if (line.startsWith('#EXTINF:')) seconds = Number.parseFloat(valueOf(line));
    else if (line.startsWith('#EXT-X-BYTERANGE:')) range = rangeOf(line);
    else if (!line.startsWith('#')) {
      if (Number.isNaN(seconds)) throw new Error(`no EXTINF before ${line.replace(/\?.*/, '')}`);
      segments.push({ uri: line, seconds, range });
      [seconds, range] = [NaN, null];
    }
  }
  const target = lines.find((line) => line.startsWith('#EXT-X-TARGETDURATION:'));
  return { init: required(map, 'URI'), targetSeconds: Number(valueOf(target ?? ':NaN')), segments };
}

function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n/).filter((line) => line !== '');
  if (lines[0] !== '#EXTM3U') throw new Error('the playlist does not begin with #EXTM3U');
  return lines;
}

const valueOf = (line: string): string => line.slice(line.indexOf(':') + 1);

/** An attribute of a tag, without its quotes (§4.2). */
function attribute(line: string, name: string): string | undefined {
  const value = new RegExp(`[:,]${name}=("[^"]*"|[^,]*)`).exec(line)?.[1];
  return value?.replace(/^"|"$/g, '');
}

function required(line: string, name: string): string {
  const value = attribute(line, name);
  if (value === undefined) throw new Error(`no ${name} in ${line}`);
  return value;
}

function rangeOf(line: string): ByteRange {
  const [length = NaN, offset = NaN] = valueOf(line).split('@').map(Number);
  if (Number.isNaN(length) || Number.isNaN(offset)) throw new Error(`not a whole byte range: ${line}`);
  return { offset, length };
}
