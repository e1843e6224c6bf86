import { type World } from './world.ts';

/** What is no video's: the probe of readiness, and the marks by which a restored record is known. */
const others = ['.millrace-probe', 'record/marks/'];

export const bucketRules = {
  /** Every object lies under a prefix that the record keeps. */
  'no object is an orphan': ({ objects, prefixes }: World): string[] => {
    const kept = [...others, ...prefixes.filter(({ doomed }) => !doomed).map(({ prefix }) => prefix)];
    return objects
      .filter(({ key }) => !kept.some((prefix) => key.startsWith(prefix)))
      .map(({ key }) => `nothing keeps ${key}`);
  },

  /** Whatever was begun in the store was ended there. */
  'no multipart upload is an orphan': ({ multiparts }: World): string[] =>
    multiparts.map(({ key }) => `an upload of ${key} is still open`),

  /** A prefix is an original's, or a winner's, or it is gone. */
  'no prefix is an orphan': ({ prefixes, outputs, videos }: World): string[] => {
    const alive = new Map(videos.filter(({ deleted }) => !deleted).map((video) => [video.id, video]));
    return prefixes.flatMap(({ prefix, videoId, kind, doomed }) => {
      const video = alive.get(videoId);
      if (doomed) return [`${prefix} was given up and is not swept`];
      if (video === undefined) return [`${prefix} is of a video that is gone`];
      const wins = outputs.some((output) => output.prefix === prefix && output.jobId === video.jobId);
      return kind === 'source' || (wins && video.status === 'ready') ? [] : [`${prefix} won nothing`];
    });
  },

  'each deleted video is gone': ({ videos }: World): string[] =>
    videos.filter(({ deleted, purged }) => deleted && !purged).map(({ id }) => `${id} is not gone`),
};
