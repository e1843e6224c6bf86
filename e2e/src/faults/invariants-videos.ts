import { type Ledger } from './ledger.ts';
import { type World } from './world.ts';

/**
 * After a task was lost so often (three times in each class, `decideTrouble`) a video may be `failed` with
 * `encoding_failed`, though nothing is wrong with it. A try that failed is never excused: kills make none.
 */
const lossesToGiveUp = 6;
/** More of them than chance explains: each task would have to be under way at six kills. */
const mostGivenUp = 2;

export const videoRules = {
  /** Every upload that was begun is a video, and no video is of no upload. */
  'each upload is a video': ({ videos }: World, { uploads }: Ledger): string[] => {
    const known = new Set(uploads.map(({ videoId }) => videoId));
    const kept = new Set(videos.map(({ id }) => id));
    return [
      ...videos.filter(({ id }) => !known.has(id)).map(({ id }) => `nobody uploaded ${id}`),
      ...uploads.filter(({ videoId }) => !kept.has(videoId)).map(({ videoId }) => `${videoId} is lost`),
    ];
  },

  /** Every video is `ready` or honestly `failed`: for a fault of its file, or because its work was lost too often. */
  'each video has ended as it should': ({ videos, tasks }: World, { uploads }: Ledger): string[] => {
    const wrong = uploads.flatMap(({ videoId, expected }) => {
      const video = videos.find(({ id }) => id === videoId);
      if (video === undefined) return [];
      const is = video.deleted ? 'deleted' : (video.failureCode ?? video.status);
      return is === expected ? [] : [{ videoId, expected, is }];
    });
    const isGivenUp = ({ videoId, expected, is }: (typeof wrong)[number]): boolean =>
      expected === 'ready' &&
      is === 'encoding_failed' &&
      tasks.some((task) => task.videoId === videoId && task.losses >= lossesToGiveUp);
    const givenUp = wrong.filter(isGivenUp);
    return [
      ...wrong
        .filter((video) => !isGivenUp(video))
        .map(({ videoId, expected, is }) => `${videoId} is ${is}, not ${expected}`),
      ...(givenUp.length > mostGivenUp ? [`${givenUp.length} good films were given up`] : []),
    ];
  },

  /** Nothing is announced that cannot be fetched whole. */
  'each ready video has its objects': ({ videos, outputs, objects }: World): string[] => {
    const sizes = new Map(objects.map(({ key, bytes }) => [key, bytes]));
    return videos
      .filter(({ status, deleted }) => status === 'ready' && !deleted)
      .flatMap(({ id, indexKey, jobId }) => {
        const files = outputs.filter((output) => output.jobId === jobId).flatMap((output) => output.files);
        return [
          ...(sizes.has(indexKey ?? '') ? [] : [`${id} has no delivery index`]),
          ...(files.length > 0 ? [] : [`${id} consists of nothing`]),
          ...files
            .filter(({ key, bytes }) => sizes.get(key) !== bytes)
            .map(({ key, bytes }) => `${key} has ${sizes.get(key) ?? 'no'} bytes, not ${bytes}`),
        ];
      });
  },
};
