import { type Customer } from '../demo/customer.ts';
import { parseMaster, parseMedia } from '../demo/hls.ts';
import { createPlayer } from '../demo/walk.ts';
import { type View } from './ledger.ts';
import { persistently } from './persistent.ts';

/** Watches a video twice with one token: the same viewer, who counts once. */
export async function watch(
  { client, projectId, domain }: Customer,
  videoId: string,
  { certain, signal }: { certain: boolean; signal: AbortSignal },
): Promise<View[]> {
  const player = createPlayer(`https://${domain}`, signal);
  const text = async (url: string): Promise<string> => (await player.get(url)).toString('utf8');
  const { token, playlistUrl = '' } = await persistently(signal, () =>
    client.createPlaybackToken({ projectId, videoId, body: { domain } }),
  );
  const watchOnce = async (): Promise<View[]> => {
    const [variant] = parseMaster(await text(playlistUrl)).variants;
    const media = new URL(variant?.uri ?? '', playlistUrl).href;
    const { segments } = parseMedia(await text(media));
    for (const { uri } of segments) await player.get(new URL(uri, media).href);
    return segments.map(({ seconds }, segment) => {
      return { videoId, token, segment, ms: Math.round(seconds * 1_000), certain };
    });
  };
  await persistently(signal, watchOnce);
  return persistently(signal, watchOnce);
}
