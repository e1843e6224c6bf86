/** Reads what a player needs of HLS playlists (RFC 8216). Addresses are made absolute. */

interface Variant {
  url: string;
  /** Bits a second. */
  bandwidth: number;
}

interface Multivariant {
  /** From the least bandwidth on. */
  variants: Variant[];
  /** The first rendition of the sound; null when there is none apart from the picture. */
  audioUrl: string | null;
}

export interface MediaPlaylist {
  initUrl: string | null;
  segments: { url: string; ms: number }[];
}

/** @throws Error when it lists no variant */
export function parseMultivariant(text: string, url: string): Multivariant {
  const lines = linesOf(text);
  const variants = lines.flatMap((line, i) => {
    const next = lines[i + 1];
    if (!line.startsWith('#EXT-X-STREAM-INF:') || next === undefined || next.startsWith('#')) return [];
    return [{ url: resolve(next, url), bandwidth: Number(attribute(line, 'BANDWIDTH') ?? 0) }];
  });
  if (variants.length === 0) throw new Error('the multivariant playlist lists no variant');
  const sound = lines.find((line) => line.startsWith('#EXT-X-MEDIA:') && attribute(line, 'TYPE') === 'AUDIO');
  const uri = sound === undefined ? undefined : attribute(sound, 'URI');
  return {
    variants: variants.sort((a, b) => a.bandwidth - b.bandwidth),
    audioUrl: uri === undefined ? null : resolve(uri, url),
  };
}

/** @throws Error when it has no segments, or one without a length */
export function parseMedia(text: string, url: string): MediaPlaylist {
  const lines = linesOf(text);
  const segments: MediaPlaylist['segments'] = [];
  let ms = 0;
  for (const line of lines) {
    if (line.startsWith('#EXTINF:')) ms = 1_000 * Number.parseFloat(line.slice('#EXTINF:'.length));
    else if (!line.startsWith('#')) {
      if (!(ms > 0)) throw new Error('a segment of the media playlist has no length');
      segments.push({ url: resolve(line, url), ms });
      ms = 0;
    }
  }
  if (segments.length === 0) throw new Error('the media playlist has no segments');
  const map = lines.find((line) => line.startsWith('#EXT-X-MAP:'));
  const init = map === undefined ? undefined : attribute(map, 'URI');
  return { initUrl: init === undefined ? null : resolve(init, url), segments };
}

function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n/).filter((line) => line !== '');
  if (lines[0] !== '#EXTM3U') throw new Error('the playlist does not begin with #EXTM3U');
  return lines;
}

/** An attribute of a tag without its quotes (§4.2). */
function attribute(line: string, name: string): string | undefined {
  const value = new RegExp(`[:,]${name}=("[^"]*"|[^,]*)`).exec(line)?.[1];
  return value?.replace(/^"|"$/g, '');
}

/** A link of a playlist made absolute (RFC 3986 §5.2); k6 has no `URL`. */
export function resolve(link: string, base: string): string {
  if (/^[a-z][a-z0-9+.-]*:/i.test(link)) return link;
  const [, origin = '', path = '/'] = /^([a-z]+:\/\/[^/?#]+)([^?#]*)/i.exec(base) ?? [];
  if (link.startsWith('/')) return origin + link;
  if (link.startsWith('?')) return origin + path + link;
  const [, linkPath = '', query = ''] = /^([^?]*)(.*)$/.exec(link) ?? [];
  const steps = path.split('/').slice(0, -1);
  for (const step of linkPath.split('/')) {
    // The first step is what stands before the first slash.
    if (step === '..') steps.length = Math.max(1, steps.length - 1);
    else if (step !== '.') steps.push(step);
  }
  return `${origin}${steps.join('/')}${query}`;
}

/** The same address with this token in place of the one it bears. */
export const withToken = (url: string, token: string): string =>
  url.replace(/([?&]token=)[^&]*/, (_, before: string) => before + token);
