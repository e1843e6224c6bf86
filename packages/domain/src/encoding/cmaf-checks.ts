import { type CmafFragment, type CmafTrack } from './cmaf.ts';
import { type EncodeManifest } from './types.ts';

/** The outputs of one video task: the track of each rendition, in the manifest's order. */
export type ChunkTracks = readonly CmafTrack[];

/**
 * What an assembler demands of finished video chunks (design: one init segment for each rendition, gapless
 * decode times, a sync sample first, the same edges in all renditions, the planned frames). Returns what is
 * wrong, in words; nothing when all is well. `chunks` are in order.
 *
 * The last chunk may end early: what does not decode at the end of a damaged source is missing, and
 * `playedFrames` tells by how much.
 */
export function checkVideo(manifest: EncodeManifest, chunks: readonly ChunkTracks[]): string[] {
  if (chunks.length !== manifest.chunks.length)
    return [`${chunks.length} of ${manifest.chunks.length} chunks`];
  return chunks.flatMap((tracks, index) => [
    ...checkChunk(manifest, index, tracks),
    ...checkInits(chunks[0] ?? [], tracks).map((problem) => `chunk ${index}: ${problem}`),
  ]);
}

/** Frames that the renditions really hold. */
export const playedFrames = (chunks: readonly ChunkTracks[]): number =>
  chunks.reduce((sum, tracks) => sum + sampleCount(tracks[0]?.fragments ?? []), 0);

const sampleCount = (fragments: readonly CmafFragment[]): number =>
  fragments.reduce((sum, fragment) => sum + fragment.samples, 0);

function checkInits(first: ChunkTracks, tracks: ChunkTracks): string[] {
  return tracks.flatMap((track, i) =>
    first[i]?.initBytes.equals(track.initBytes) === true ? [] : [`rendition ${i} has another init segment`],
  );
}

function checkChunk(manifest: EncodeManifest, index: number, tracks: ChunkTracks): string[] {
  const chunk = manifest.chunks[index];
  if (chunk === undefined || tracks.length !== manifest.renditions.length) return ['renditions are missing'];
  const isLast = index === manifest.chunks.length - 1;
  const counts = new Set(tracks.map((track) => sampleCount(track.fragments)));
  const [frames] = [...counts];
  const problems: string[] = [];
  if (counts.size !== 1 || frames === undefined) problems.push('renditions have different lengths');
  else if (frames === 0 || frames > chunk.frames || (!isLast && frames < chunk.frames)) {
    problems.push(`${frames} frames where ${chunk.frames} were planned`);
  }
  return [
    ...problems,
    ...tracks.flatMap((track, i) => {
      const found = [...checkSize(manifest, i, track), ...checkGrid(manifest, chunk.firstFrame, track)];
      return found.map((problem) => `chunk ${index}, rendition ${i}: ${problem}`);
    }),
  ];
}

function checkSize(manifest: EncodeManifest, index: number, track: CmafTrack): string[] {
  const planned = manifest.renditions[index];
  return planned?.width === track.width && planned.height === track.height
    ? []
    : [`${track.width} × ${track.height} is not the planned size`];
}

/** Each segment starts with a sync sample on the grid's edge, and lasts as long as its frames. */
function checkGrid(manifest: EncodeManifest, firstFrame: number, track: CmafTrack): string[] {
  const [num, den] = manifest.frameRate;
  const ticksPerFrame = (track.timescale * den) / num;
  if (!Number.isInteger(ticksPerFrame)) return ['the timescale does not divide into frames'];
  const problems: string[] = [];
  for (const [n, fragment] of track.fragments.entries()) {
    const frame = firstFrame + n * manifest.segmentFrames;
    const isLast = n === track.fragments.length - 1;
    if (fragment.tfdt !== frame * ticksPerFrame) problems.push(`segment ${n} starts at ${fragment.tfdt}`);
    if (!fragment.firstSampleIsSync) problems.push(`segment ${n} does not start with a key frame`);
    if (!isLast && fragment.samples !== manifest.segmentFrames) {
      problems.push(`segment ${n} has ${fragment.samples} frames`);
    }
    if (fragment.durationTicks !== fragment.samples * ticksPerFrame) {
      problems.push(`segment ${n} lasts ${fragment.durationTicks}`);
    }
  }
  return problems;
}

/** The same for a sound track, whose segments are whole AAC frames from zero without a gap. */
export function checkAudio(manifest: EncodeManifest, index: number, track: CmafTrack): string[] {
  const planned = manifest.audio[index];
  if (planned === undefined) return ['no such track'];
  if (track.timescale !== planned.sampleRate) return [`${track.timescale} is not the planned sample rate`];
  const problems: string[] = [];
  let expected = 0;
  for (const [n, fragment] of track.fragments.entries()) {
    if (fragment.tfdt !== expected) problems.push(`segment ${n} starts at ${fragment.tfdt}, not ${expected}`);
    expected += fragment.durationTicks;
  }
  const frames = sampleCount(track.fragments);
  if (frames !== planned.frames) problems.push(`${frames} frames where ${planned.frames} were planned`);
  return problems;
}
