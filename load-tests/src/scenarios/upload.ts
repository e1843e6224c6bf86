import { createApi, type Video } from '../api.ts';
import { readyWithinMs } from '../objectives.ts';
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
 * Waits from the completed upload on, and measures against the promise. The service knows a video's length when it is
 * ready, so that one is judged then; until then it has the time that the settings' length gives it.
 * @throws Error when the video failed or was not ready in time
 */
export async function untilReady(world: World, videoId: string): Promise<void> {
  const { clock, meter, settings } = world;
  const completedAt = clock.now();
  const video = await settled(world, videoId, completedAt + readyWithinMs(settings.sourceSeconds));
  const tookMs = clock.now() - completedAt;
  const bound = readyWithinMs(video.durationSeconds ?? settings.sourceSeconds);
  const inTime = video.status === 'ready' && tookMs <= bound;
  meter.event('ready_in_time', inTime);
  meter.took('ready', tookMs);
  if (!inTime) throw new Error(`a video was ${video.status} after ${Math.round(tookMs / 1_000)} s`);
}

/** As soon as it is known that it is ready, failed, or late. @param until by the clock */
async function settled(world: World, videoId: string, until: number): Promise<Video> {
  const api = createApi(world);
  for (;;) {
    const video = await api.getVideo(videoId);
    const isOver = video.status !== 'processing' && video.status !== 'uploading';
    if (isOver || world.clock.now() > until) return video;
    await world.clock.sleep(pollMs);
  }
}
