import { createApi } from './api.ts';
import { type Prepared } from './scenario.ts';
import { uploadVideo, untilReady } from './scenarios/upload.ts';
import { type World } from './world.ts';

/** What a test works on. */
export interface Wants {
  /** Ready videos, of which the last is held when `held` is set. */
  videos: number;
  held: boolean;
}

/**
 * Makes what the test needs: videos unless there are some by the settings, and endpoints for a storm.
 * @throws Error when something cannot be made; what was made is removed then
 */
export async function prepare(
  world: World,
  { videos: count, held }: Wants,
  source: ArrayBuffer | null,
): Promise<Prepared> {
  const { settings } = world;
  const prepared: Prepared = { videos: [], held: null, endpoints: null, uploaded: [] };
  try {
    while (prepared.uploaded.length < count - settings.videoIds.length) {
      prepared.uploaded.push(await uploadVideo(world, source));
    }
    for (const id of prepared.uploaded) await untilReady(world, id);
    prepared.videos = [...settings.videoIds, ...prepared.uploaded];
    if (held) prepared.held = prepared.videos.pop() ?? null;
    if (settings.webhooks !== null) prepared.endpoints = await createEndpoints(world, settings.webhooks);
    return prepared;
  } catch (error) {
    await tidyUp(world, prepared);
    throw error;
  }
}

async function createEndpoints(
  world: World,
  { url, slowUrl, deadUrl }: NonNullable<World['settings']['webhooks']>,
): Promise<NonNullable<Prepared['endpoints']>> {
  const api = createApi(world);
  const { id: healthy } = await api.createEndpoint(url);
  const endpoints = { healthy, troubled: [] as string[] };
  try {
    for (const troubled of [slowUrl, deadUrl]) {
      if (troubled !== null) endpoints.troubled.push((await api.createEndpoint(troubled)).id);
    }
    return endpoints;
  } catch (error) {
    await deleteEndpoints(world, endpoints);
    throw error;
  }
}

/** Removes what `prepare` made. @throws Error naming the first that could not be removed; the others are */
export async function tidyUp(world: World, { uploaded, endpoints }: Prepared): Promise<void> {
  const api = createApi(world);
  const work = uploaded.map((id) => api.deleteVideo(id));
  if (endpoints !== null) work.push(deleteEndpoints(world, endpoints));
  await Promise.allSettled(work);
  await Promise.all(work);
}

async function deleteEndpoints(
  world: World,
  { healthy, troubled }: NonNullable<Prepared['endpoints']>,
): Promise<void> {
  const api = createApi(world);
  await Promise.all([healthy, ...troubled].map((id) => api.deleteEndpoint(id)));
}
