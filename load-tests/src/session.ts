import { codeOf, createApi } from './api.ts';
import { withToken } from './hls.ts';
import { type Answer, type World } from './world.ts';

/** A viewer's right to play one video: a token that is renewed by the customer's server before it ends. */
export interface Session {
  /** Address of the multivariant playlist. */
  playlistUrl: string;
  /** GETs something of the video as a page on the customer's domain does. */
  get(url: string, name: CdnRequest): Promise<Answer>;
  /** The same, for what must be there. @throws Error when it was not answered with 200 */
  require(url: string, name: CdnRequest): Promise<Answer>;
}
type CdnRequest = 'multivariant playlist' | 'media playlist' | 'init segment' | 'segment';

export async function openSession(world: World, videoId: string): Promise<Session> {
  const { clock, http, meter, settings } = world;
  const { tokenSeconds, renewBeforeMs } = settings.viewing;
  const api = createApi(world);
  let renewal: Promise<void> | null = null;
  let renewAt = 0;
  let token = '';
  let embedUrl = '';
  const renew = async (): Promise<void> => {
    // By our own clock, from before the call: the service's may be ahead or behind.
    const askedAt = clock.now();
    ({ token, embedUrl } = await api.createPlaybackToken(videoId));
    renewAt = askedAt + 1_000 * tokenSeconds - renewBeforeMs;
  };
  const fresh = async (): Promise<void> => {
    if (renewal === null && clock.now() >= renewAt) {
      meter.happened('token_renewals');
      renewal = renew().finally(() => (renewal = null));
    }
    await renewal;
  };
  await renew();
  const get: Session['get'] = async (url, name) => {
    await fresh();
    const answer = await http.send(withToken(url, token), {
      name,
      headers: { origin: `https://${settings.domain}` },
      refusable: true,
      drop: !name.endsWith('playlist'),
    });
    meter.event('playback_available', answer.status !== 0 && answer.status < 500, { name });
    return answer;
  };
  return {
    playlistUrl: playlistOf(embedUrl, videoId),
    get,
    require: async (url, name) => {
      const answer = await get(url, name);
      const code = answer.header('x-svc-error') ?? codeOf(answer.text);
      const refused = answer.status >= 400 && answer.status < 500;
      meter.event('playback_accepted', !refused, refused ? { name, code } : { name });
      if (answer.status !== 200) throw new Error(`${name} answered ${answer.status} ${code}`);
      return answer;
    },
  };
}

/** `playlistUrl` is only told on plans with white label; every plan has an embed page beside it. */
const playlistOf = (embedUrl: string, videoId: string): string =>
  embedUrl.replace(`/e/${videoId}`, `/v/${videoId}/master.m3u8`);
