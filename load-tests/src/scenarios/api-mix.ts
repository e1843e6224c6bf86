import { type Api, createApi } from '../api.ts';
import { type Scenario } from '../scenario.ts';
import { pick } from './pick.ts';

/**
 * What customers' servers ask, by how often they do: a token for each viewer above all, then the state of videos and
 * lists for dashboards, seldom what changes something.
 */
const mix: readonly [share: number, call: (api: Api, videoId: string) => Promise<unknown>][] = [
  [45, (api, id) => api.createPlaybackToken(id)],
  [25, (api, id) => api.getVideo(id)],
  [12, (api) => listTwoPages(api)],
  [5, (api) => api.getProject()],
  [5, (api) => api.listDomains()],
  [3, (api) => api.listEndpoints()],
  [3, (api) => api.createUploadToken()],
  [2, (api, id) => api.renameVideo(id, 'Load test')],
];
const shares = mix.reduce((sum, [share]) => sum + share, 0);

async function listTwoPages(api: Api): Promise<void> {
  const { nextCursor } = await api.listVideos(null);
  if (nextCursor !== null) await api.listVideos(nextCursor);
}

/** One call of a customer's server. */
export const customerCall: Scenario = async (world, { videos }) => {
  let at = world.random() * shares;
  const [, call] = mix.find(([share]) => (at -= share) < 0) ?? mix[0] ?? [];
  await call?.(createApi(world), pick(videos, world.random()));
};
