import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { type ByteRange, parseMaster, parseMedia, type Variant } from './hls.ts';

/** A media playlist as played. */
interface PlayedTrack {
  /** Init and segments joined into one file; of an I-frame playlist init and the first picture. */
  path: string;
  /** `#EXT-X-TARGETDURATION`. */
  targetSeconds: number;
  segments: { seconds: number; bytes: number }[];
  /** Sum of the segments, in seconds. */
  seconds: number;
}

export type PlayedVariant = Variant & PlayedTrack;

export interface Walk {
  variants: PlayedVariant[];
  audio: PlayedTrack[];
  iframes: PlayedTrack[];
  bytes: number;
}

/** How a player asks: from a page of this origin. */
export interface Player {
  origin: string;
  /** @throws Error for every answer but 200 (206 with a range), and for one that a browser keeps from the page */
  get(url: string, range?: ByteRange): Promise<Buffer>;
}

const requestTimeoutMs = 30_000;

export const createPlayer = (origin: string, signal?: AbortSignal): Player => ({
  origin,
  get: async (url, range) => {
    const timeout = AbortSignal.timeout(requestTimeoutMs);
    const asked = range && `bytes=${range.offset}-${range.offset + range.length - 1}`;
    const response = await fetch(url, {
      headers: { origin, ...(asked === undefined ? {} : { range: asked }) },
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    const body = Buffer.from(await response.arrayBuffer());
    if (response.status !== (range ? 206 : 200)) {
      const problem = body.toString('utf8', 0, 300);
      throw new Error(`GET ${withoutToken(url)} answered ${response.status} ${problem}`);
    }
    if (range && body.length !== range.length) {
      throw new Error(`GET ${withoutToken(url)} sent ${body.length} bytes for ${asked ?? ''}`);
    }
    const allowed = response.headers.get('access-control-allow-origin');
    if (allowed !== origin) throw new Error(`GET ${withoutToken(url)} allows origin ${allowed ?? 'none'}`);
    return body;
  },
});

/** Tokens are never shown. */
const withoutToken = (url: string): string => url.replace(/token=[^&]*/, 'token=…');

/**
 * Walks everything that a master playlist lists into files, as a player does that only follows addresses.
 * @throws Error naming the address that did not answer, or the playlist that makes no sense
 */
export async function walkVideo(player: Player, playlistUrl: string, folder: string): Promise<Walk> {
  await mkdir(folder, { recursive: true });
  const text = (await player.get(playlistUrl)).toString('utf8');
  const master = parseMaster(text);
  let bytes = text.length;
  const play = async (uri: string, name: string): Promise<PlayedTrack> => {
    const track = await playTrack(player, new URL(uri, playlistUrl).href, join(folder, name));
    bytes += track.segments.reduce((sum, segment) => sum + segment.bytes, 0);
    return track;
  };
  const walk: Walk = { variants: [], audio: [], iframes: [], bytes: 0 };
  for (const [i, variant] of master.variants.entries()) {
    walk.variants.push({ ...variant, ...(await play(variant.uri, `video-${i}.mp4`)) });
  }
  for (const [i, uri] of master.audio.entries()) walk.audio.push(await play(uri, `audio-${i}.mp4`));
  for (const [i, uri] of master.iframes.entries()) walk.iframes.push(await play(uri, `iframes-${i}.mp4`));
  return { ...walk, bytes };
}

async function playTrack(player: Player, url: string, path: string): Promise<PlayedTrack> {
  const { init, targetSeconds, segments } = parse((await player.get(url)).toString('utf8'), url);
  const file = await open(path, 'w');
  try {
    await file.write(await player.get(new URL(init, url).href));
    const played: PlayedTrack['segments'] = [];
    for (const { uri, seconds, range } of segments) {
      const body = await player.get(new URL(uri, url).href, range ?? undefined);
      if (range === null || played.length === 0) await file.write(body);
      played.push({ seconds, bytes: body.length });
    }
    return { path, targetSeconds, segments: played, seconds: sumOf(played) };
  } finally {
    await file.close();
  }
}

const sumOf = (segments: PlayedTrack['segments']): number =>
  segments.reduce((sum, { seconds }) => sum + seconds, 0);

function parse(text: string, url: string): ReturnType<typeof parseMedia> {
  try {
    return parseMedia(text);
  } catch (error) {
    throw new Error(`the playlist ${withoutToken(url)} cannot be played`, { cause: error });
  }
}
