import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What a master playlist says of one variant. */
interface Variant {
  uri: string;
  width: number;
  height: number;
  frameRate: number;
  codecs: string;
}

/** A media playlist as played: init and segments joined into one file. */
interface PlayedTrack {
  uri: string;
  path: string;
  segments: number;
  /** Sum of its EXTINF, in seconds. */
  seconds: number;
}

export interface Walk {
  variants: (Variant & PlayedTrack)[];
  audio: PlayedTrack[];
  bytes: number;
}

/** How a player asks: with the page's origin. */
export interface Player {
  origin: string;
  get(url: string): Promise<Buffer>;
}

/** @throws Error for every answer but 200 */
export const createPlayer = (origin: string): Player => ({
  origin,
  get: async (url) => {
    const response = await fetch(url, { headers: { origin } });
    const body = Buffer.from(await response.arrayBuffer());
    if (response.status !== 200) {
      throw new Error(
        `GET ${withoutToken(url)} answered ${response.status} ${body.toString().slice(0, 300)}`,
      );
    }
    return body;
  },
});

/** Tokens are never shown. */
const withoutToken = (url: string): string => url.replace(/token=[^&]*/, 'token=…');

/** An attribute of a tag, without its quotes (RFC 8216 §4.2). */
function attribute(line: string, name: string): string | undefined {
  const value = new RegExp(`[:,]${name}=("[^"]*"|[^,]*)`).exec(line)?.[1];
  return value?.replace(/^"|"$/g, '');
}

/** Walks everything that a master playlist lists, as a player that only follows addresses, into files. */
export async function walkVideo(player: Player, playlistUrl: string, folder: string): Promise<Walk> {
  await mkdir(folder, { recursive: true });
  const lines = (await player.get(playlistUrl)).toString('utf8').split('\n');
  if (lines[0] !== '#EXTM3U') throw new Error('the master playlist does not begin with #EXTM3U');
  const variants: Walk['variants'] = [];
  const audio: Walk['audio'] = [];
  let bytes = 0;
  const play = async (uri: string, name: string): Promise<PlayedTrack> => {
    const track = await playTrack(player, new URL(uri, playlistUrl).href, join(folder, name));
    bytes += track.bytes;
    return track;
  };
  for (const [i, line] of lines.entries()) {
    if (line.startsWith('#EXT-X-MEDIA:') && attribute(line, 'TYPE') === 'AUDIO') {
      audio.push(await play(attribute(line, 'URI') ?? '', `audio-${audio.length}.mp4`));
    }
    if (!line.startsWith('#EXT-X-STREAM-INF:')) continue;
    const uri = lines[i + 1] ?? '';
    const [width = 0, height = 0] = (attribute(line, 'RESOLUTION') ?? '').split('x').map(Number);
    const stated = {
      width,
      height,
      frameRate: Number(attribute(line, 'FRAME-RATE')),
      codecs: attribute(line, 'CODECS') ?? '',
    };
    variants.push({ ...(await play(uri, `video-${variants.length}.mp4`)), ...stated, uri });
  }
  if (variants.length === 0) throw new Error('the master playlist lists no variant');
  return { variants, audio, bytes };
}

async function playTrack(
  player: Player,
  url: string,
  path: string,
): Promise<PlayedTrack & { bytes: number }> {
  const text = (await player.get(url)).toString('utf8');
  if (!text.includes('#EXT-X-ENDLIST')) throw new Error(`the playlist ${withoutToken(url)} does not end`);
  const init = attribute(text.split('\n').find((line) => line.startsWith('#EXT-X-MAP:')) ?? '', 'URI');
  if (init === undefined) throw new Error(`the playlist ${withoutToken(url)} names no init segment`);
  const uris = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const seconds = [...text.matchAll(/#EXTINF:([0-9.]+)/g)].reduce(
    (sum, [, duration]) => sum + Number(duration),
    0,
  );
  const pieces: Buffer[] = [];
  for (const uri of [init, ...uris]) pieces.push(await player.get(new URL(uri, url).href));
  const body = Buffer.concat(pieces);
  await writeFile(path, body);
  return { uri: url, path, segments: uris.length, seconds, bytes: body.length };
}
