import { type Api, createApi, type Video } from '../api.ts';
import { bounds } from '../objectives.ts';
import { type Scenario } from '../scenario.ts';
import { type World } from '../world.ts';

const pollMs = 1_000;

/** Uploads the file, waits until it can play and deletes it. */
export const upload: Scenario = async (world, _prepared, source) => {
  const api = createApi(world);
  const videoId = await uploadVideo(world, source);
  try {
    await untilReady(world, videoId);
  } finally {
    await api.deleteVideo(videoId);
  }
};

/** Sends the parts one after the other and completes; returns the video's id. @throws Error for a refused part */
export async function uploadVideo(world: World, source: ArrayBuffer | null): Promise<string> {
  if (source === null) throw new Error('there is no file to upload');
  const api = createApi(world);
  const started = await api.startUpload(source.byteLength);
  const parts: { partNumber: number; etag: string }[] = [];
  for (const { partNumber, url } of started.parts) {
    const start = (partNumber - 1) * started.partSizeBytes;
    const body = source.slice(start, start + started.partSizeBytes);
    const answer = await world.http.send(url, { method: 'PUT', body, name: 'put part' });
    const etag = answer.header('etag');
    if (answer.status !== 200 || etag === undefined) {
      throw new Error(`put part answered ${answer.status}`);
    }
    parts.push({ partNumber, etag });
  }
  const { id } = await api.completeUpload(started.id, parts);
  return id;
}

/**
 * Waits from the completed upload on, and measures against the promise.
 * @throws Error when the video failed or was not ready in time
 */
export async function untilReady(world: World, videoId: string): Promise<void> {
  const { clock, meter } = world;
  const completedAt = clock.now();
  const video = await settled(world, createApi(world), { videoId, completedAt });
  const tookMs = clock.now() - completedAt;
  const inTime = video.status === 'ready' && tookMs <= boundOf(video);
  meter.event('ready_in_time', inTime);
  meter.took('ready', tookMs);
  if (!inTime) throw new Error(`a video was ${video.status} after ${Math.round(tookMs / 1_000)} s`);
}

/** As soon as it is known that it is ready, failed, or late. */
async function settled(
  { clock }: World,
  api: Api,
  { videoId, completedAt }: { videoId: string; completedAt: number },
): Promise<Video> {
  for (;;) {
    const video = await api.getVideo(videoId);
    const isOver = video.status !== 'processing' && video.status !== 'uploading';
    if (isOver || clock.now() - completedAt > boundOf(video)) return video;
    await clock.sleep(pollMs);
  }
}

/** How long a video may take, in milliseconds. */
const boundOf = ({ durationSeconds }: Video): number =>
  bounds.readyLengths * Math.max(bounds.shortestMs, 1_000 * (durationSeconds ?? 0));
