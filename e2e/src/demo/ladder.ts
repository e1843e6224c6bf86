import { type Size } from './media.ts';

/** A rung of the ladder: a quality and the size of its picture. */
interface Rung extends Size {
  quality: string;
}

const boxes = [360, 720, 1080, 1440, 2160];
const even = (size: number): number => Math.max(2, 2 * Math.round(size / 2));

/**
 * What the rung rule promises for a displayed size: each quality whose 16:9 box, turned to the picture's
 * orientation, the picture fills without enlargement; one rendition at its own size when it fills none. Written
 * here once more, apart from the service's planner, so that the demo can disagree with it.
 */
export function promisedLadder({ width, height }: Size): Rung[] {
  const rungs = boxes.flatMap((short) => {
    const long = (short * 16) / 9;
    const [boxWidth, boxHeight] = width >= height ? [long, short] : [short, long];
    const scale = Math.min(boxWidth / width, boxHeight / height);
    return scale > 1
      ? []
      : [{ quality: `${short}p`, width: even(width * scale), height: even(height * scale) }];
  });
  return rungs.length > 0 ? rungs : [{ quality: '360p', width: even(width), height: even(height) }];
}
