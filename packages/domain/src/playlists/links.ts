/**
 * Splits a playlist once at the places where a query parameter belongs: the end of every URI line and of every
 * `URI="…"` attribute (RFC 8216 §4.1, §4.2). `pieces.join('?token=…')` is then the playlist with the token on
 * each link, whatever the token. An existing query stays, behind the token (`a?x=1` becomes `a?token=…&x=1`);
 * a fragment stays last.
 */
export function splitAtLinks(playlist: string): string[] {
  const cuts: Cut[] = [];
  let start = 0;
  for (const line of playlist.split('\n')) {
    const text = line.endsWith('\r') ? line.slice(0, -1) : line;
    if (text.startsWith('#EXT')) cuts.push(...cutsOfAttributes(text, start));
    else if (text.trim() !== '' && !text.startsWith('#')) cuts.push(cutOfLink(text, start));
    start += line.length + 1;
  }
  return splitAt(playlist, cuts);
}

/**
 * The same for a WebVTT thumbnail track: its links are the cue lines that name a picture, `sprite.jpg#xywh=…`.
 */
export function splitVttAtPictures(vtt: string): string[] {
  const cuts: Cut[] = [];
  for (const match of vtt.matchAll(/^[A-Za-z0-9._-]+\.jpg(?=[#\r\n]|$)/gm)) {
    cuts.push(cutOfLink(match[0], match.index));
  }
  return splitAt(vtt, cuts);
}

/** Where the token goes; `drop` is 1 when a `?` there turns into `&`. */
interface Cut {
  at: number;
  drop: 0 | 1;
}

function splitAt(text: string, cuts: readonly Cut[]): string[] {
  const pieces: string[] = [];
  let from = 0;
  let prefix = '';
  for (const { at, drop } of cuts) {
    pieces.push(prefix + text.slice(from, at));
    from = at + drop;
    prefix = drop === 1 ? '&' : '';
  }
  pieces.push(prefix + text.slice(from));
  return pieces;
}

function cutOfLink(link: string, start: number): Cut {
  const end = link.search(/[?#]/);
  if (end < 0) return { at: start + link.length, drop: 0 };
  return { at: start + end, drop: link[end] === '?' ? 1 : 0 };
}

/** `NAME=value` at the place the last one ended; a quoted value may hold commas and anything but quotes. */
const attribute = /([A-Z0-9-]+)=(?:"([^"]*)"|[^",]*)(?:,|$)/y;

function cutsOfAttributes(tag: string, start: number): Cut[] {
  const cuts: Cut[] = [];
  attribute.lastIndex = tag.indexOf(':') + 1;
  if (attribute.lastIndex === 0) return cuts;
  for (let match = attribute.exec(tag); match !== null; match = attribute.exec(tag)) {
    const [, name, quoted] = match;
    if (name === 'URI' && quoted !== undefined && quoted !== '') {
      cuts.push(cutOfLink(quoted, start + match.index + 'URI="'.length));
    }
    if (attribute.lastIndex === tag.length) break;
  }
  return cuts;
}
