import { qualities, type Quality } from '@millrace/contract';

/** What a path asks for. The kinds name the route in metrics too. */
type TargetKind = 'master' | 'media' | 'iframes' | 'init' | 'segment' | 'file' | 'captions' | 'cues';

/** A path of a video file that can be served (contract "CDN routes"), taken apart. */
export interface Target {
  kind: TargetKind;
  videoId: string;
  /** Path name of the track, `720p` or `audio-2`, language of captions; empty for `master` and `file`. */
  track: string;
  /** The quality asked for; null where the path names none. */
  quality: Quality | null;
  /** Segment number from 0; 0 for other kinds. */
  n: number;
  /** Path below the video for `file`, else empty. */
  file: string;
}

const number = '0|[1-9][0-9]{0,6}';
const path = new RegExp(
  '^/v/(?<videoId>vid_[A-Za-z0-9]+)/(?:' +
    '(?<master>master\\.m3u8)' +
    `|(?<track>${qualities.join('|')}|audio(?:-(?:[2-9]|[1-9][0-9]))?)/` +
    `(?:(?<playlist>index|iframes)\\.m3u8|(?<init>init\\.mp4)|seg-(?<n>${number})\\.m4s)` +
    `|(?<file>poster\\.jpg|storyboard\\.vtt|storyboard-(?:${number})\\.jpg)` +
    '|captions/(?<language>[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,8})/' +
    `(?:(?<captions>index\\.m3u8)|seg-(?<cues>${number})\\.vtt)` +
    ')$',
);

/**
 * Takes the path of a request apart, or null when it is not a video file served. The path is compared as it
 * came: nothing is decoded or normalised, so a `%`, a `..`, a `//` or a backslash anywhere fits no route.
 */
export function parseTarget(rawPath: string): Target | null {
  const groups = path.exec(rawPath)?.groups;
  if (groups === undefined) return null;
  const { videoId = '', master, track = '', playlist, init, n, file = '' } = groups;
  const { language = '', captions, cues } = groups;
  const quality = qualities.find((each) => each === track) ?? null;
  const target = { videoId, track, quality, n: 0, file };
  if (master !== undefined) return { ...target, kind: 'master' };
  if (file !== '') return { ...target, kind: 'file' };
  if (init !== undefined) return { ...target, kind: 'init' };
  if (n !== undefined) return { ...target, kind: 'segment', n: Number(n) };
  if (playlist === 'index') return { ...target, kind: 'media' };
  if (captions !== undefined) return { ...target, kind: 'captions', track: language };
  if (cues !== undefined) return { ...target, kind: 'cues', track: language, n: Number(cues) };
  return quality === null ? null : { ...target, kind: 'iframes' };
}

/** Splits a request's URL at its first `?`; the query is without it, and empty when there is none. */
export function splitUrl(url: string): { path: string; query: string } {
  const at = url.indexOf('?');
  return at < 0 ? { path: url, query: '' } : { path: url.slice(0, at), query: url.slice(at + 1) };
}

/** Every value of the query parameter `token`, as it came: a token needs no percent-encoding. */
export function tokensOf(query: string): string[] {
  const found: string[] = [];
  for (let from = 0; from <= query.length;) {
    const next = query.indexOf('&', from);
    const end = next < 0 ? query.length : next;
    if (query.startsWith('token=', from)) found.push(query.slice(from + 'token='.length, end));
    from = end + 1;
  }
  return found;
}
