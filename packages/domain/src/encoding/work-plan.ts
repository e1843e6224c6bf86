import { type ProbedVideo, type SourceProbe } from './probe.ts';
import { toNumber } from './rational.ts';
import { type EncodeManifest, type ManifestChunk, type ManifestTask } from './types.ts';

/** Key frames may be this far apart: a chunk decodes from the one before its first picture. */
const longestKeyGapSeconds = 10;

/**
 * Where the video is cut for tasks of their own. Edges are output frames on the video's one grid and edges of
 * segments, so that joined chunks have the segments of the whole. A tail under half a chunk is merged.
 *
 * One chunk, the whole, when `chunkSeconds` is null or the source cannot be trusted to give the same pictures to
 * a reader that begins in its middle.
 */
export function planChunks(
  probe: SourceProbe,
  video: ProbedVideo,
  {
    frames,
    segmentFrames,
    frameRate,
    chunkSeconds,
  }: Pick<EncodeManifest, 'frames' | 'segmentFrames' | 'frameRate'> & { chunkSeconds: number | null },
): ManifestChunk[] {
  if (chunkSeconds === null || !canBeginAnywhere(probe, video)) return [{ firstFrame: 0, frames }];
  const segments = Math.max(1, Math.round((chunkSeconds * toNumber(frameRate)) / segmentFrames));
  const chunkFrames = segments * segmentFrames;
  const full = Math.floor(frames / chunkFrames);
  const count = Math.max(1, frames - full * chunkFrames < chunkFrames / 2 ? full : full + 1);
  return Array.from({ length: count }, (_, index) => {
    const firstFrame = index * chunkFrames;
    return { firstFrame, frames: index === count - 1 ? frames - firstFrame : chunkFrames };
  });
}

/**
 * True for an MP4 or MOV whose index lists each of its pictures (a fragmented or cut one lists fewer, or more),
 * with a clock that only rises and key frames close together.
 */
function canBeginAnywhere(
  { container, discontinuous }: SourceProbe,
  { times, declaredPictures, timeBase }: ProbedVideo,
): boolean {
  return (
    container === 'mp4' &&
    !discontinuous &&
    times.orderly &&
    declaredPictures === times.listed &&
    times.longestKeyGap * toNumber(timeBase) <= longestKeyGapSeconds
  );
}

/** CPU seconds for each million pixels made, read, and tone-mapped; measured on one core at veryfast. */
const costs = { made: 0.009, read: 0.003, toneMapped: 0.03 } as const;

/** The tasks before assembly: one for each chunk of video, one for each sound track, one for the pictures. */
export function planTasks(manifest: Omit<EncodeManifest, 'tasks'>): ManifestTask[] {
  const megapixels = ({ width, height }: { width: number; height: number }): number => (width * height) / 1e6;
  const made = manifest.renditions.reduce((sum, rendition) => sum + megapixels(rendition), 0);
  const largest = Math.max(...manifest.renditions.map(megapixels));
  const perFrame =
    made * costs.made +
    megapixels(manifest.video) * costs.read +
    (manifest.video.toneMap === 'none' ? 0 : largest * costs.toneMapped);
  const round = (cost: number): number => Math.max(0.1, Math.round(cost * 10) / 10);
  return [
    ...manifest.chunks.map(({ frames }, index): ManifestTask => ({
      kind: 'video',
      index,
      cost: round(frames * perFrame),
    })),
    ...manifest.audio.map((_, index): ManifestTask => ({
      kind: 'audio',
      index,
      cost: round(manifest.durationSeconds * 0.03),
    })),
    { kind: 'images', index: 0, cost: 1 },
  ];
}

/**
 * The same encode with its video in one piece: what is done when chunks turn out not to fit together. Sound and
 * pictures stay as they are.
 */
export function wholeEncode(manifest: EncodeManifest): EncodeManifest {
  const whole = { ...manifest, chunks: [{ firstFrame: 0, frames: manifest.frames }] };
  return { ...whole, tasks: planTasks(whole) };
}
