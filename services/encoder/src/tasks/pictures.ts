import { existsSync } from 'node:fs';
import path from 'node:path';
import { type EncodeManifest, imagesTaskArgs, type PosterPlace } from '@millrace/domain';
import { type Made, type Making, run } from './making.ts';

/**
 * The poster of an encode: of the moment that was asked for, else from its place, else from the start; a video that
 * gives none plays without.
 */
export async function makePictures(making: Making): Promise<Made> {
  const { manifest, context } = making;
  const { posterAtSeconds } = context.job;
  if (posterAtSeconds !== null) {
    const taken = await takePoster(making, momentPlaces(manifest, posterAtSeconds));
    if (taken.made) return taken;
  }
  const taken = await takePoster(making, chosenPlaces(manifest));
  if (!taken.made) return { ...taken, notes: [noPoster] };
  return posterAtSeconds === null ? taken : { ...taken, notes: [posterElsewhere] };
}

const noPoster = { code: 'no_poster', text: 'No picture could be taken for the poster.' };
const posterElsewhere = {
  code: 'poster_elsewhere',
  text: 'There is no picture at the moment that was chosen for the poster; another was taken.',
};

/** Where a poster is looked for whose moment is left to us. */
export const chosenPlaces = ({ images }: EncodeManifest): PosterPlace[] => {
  const { atSeconds } = images.poster;
  return [...(atSeconds > 0 ? [{ atSeconds, exact: false }] : []), { atSeconds: 0, exact: false }];
};

/** How long before a moment its key frame is looked for. What lies between may be damaged, or the index mislead. */
const reachesSeconds = [3, 60, Infinity];

/** Where the picture of a moment is looked for; nowhere when that is not within the video. */
export function momentPlaces({ durationSeconds }: EncodeManifest, atSeconds: number): PosterPlace[] {
  // What plays is known to the millisecond.
  if (atSeconds > durationSeconds + 0.001) return [];
  const fromStart = reachesSeconds.findIndex((reach) => reach >= atSeconds);
  return reachesSeconds
    .slice(0, fromStart + 1)
    .map((reachSeconds) => ({ atSeconds, exact: true, reachSeconds }));
}

/** The poster from the first of the places that gives one. */
export async function takePoster(making: Making, places: readonly PosterPlace[]): Promise<Made> {
  const { manifest, options } = making;
  let command = imagesTaskArgs(manifest, options);
  for (const place of places) {
    command = imagesTaskArgs(manifest, options, place);
    const { ok } = await run(making, command);
    const written = command.outputs.every(({ file }) => existsSync(path.join(options.outputDir, file)));
    if (ok && written) return { command, made: true, notes: [] };
  }
  return { command, made: false, notes: [] };
}
