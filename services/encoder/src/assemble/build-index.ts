import { deliveryIndex, type DeliveryIndex } from '@millrace/contract';
import { type EncodeManifest } from '@millrace/domain';
import { type MediaOutput, type StoredTrack } from '../tasks/outputs.ts';
import { wrongOutput } from '../work/trouble.ts';
import { joinTrack, mergeSliver } from './delivery-track.ts';

/**
 * Puts the outputs of a job's tasks together and checks that they are what was planned: every rendition whole,
 * the same segment edges and frames in each, sound as long as the picture. Pure.
 *
 * @param outputs of the video tasks in the order of their chunks, then of the others
 * @throws TaskTroubleError naming what does not fit
 */
export function buildIndex(
  videoId: string,
  manifest: EncodeManifest,
  outputs: readonly MediaOutput[],
): DeliveryIndex {
  const tracks = outputs.flatMap((output) => output.tracks);
  const of = (kind: StoredTrack['kind'], index: number): StoredTrack[] =>
    tracks.filter((track) => track.kind === kind && track.index === index);
  const chunked = manifest.renditions.map((_, index) => of('rendition', index));
  chunked.forEach((chunks, index) => {
    checkFrames(manifest, chunks, manifest.renditions[index]?.quality ?? '');
  });
  checkSameEdges(manifest, chunked);
  const renditions = manifest.renditions.map((rendition, index) => ({
    ...joinTrack(rendition.quality, chunked[index] ?? []),
    quality: rendition.quality,
    width: rendition.width,
    height: rendition.height,
    frameRate: manifest.frameRate.join('/'),
  }));
  const first = renditions[0];
  if (first === undefined) throw wrongOutput('there is no rendition');
  const durationMs = milliseconds(first);
  // A track whose sound cannot be decoded has no output: the video plays without it.
  const audio = manifest.audio.flatMap(({ name, language, channels }, index) => {
    const chunks = of('audio', index);
    if (chunks.length === 0) return [];
    const track = mergeSliver(joinTrack(name, chunks));
    checkSoundLength(name, milliseconds(track), durationMs);
    return [{ ...track, name, language, channels }];
  });
  const files = Object.fromEntries(
    outputs.flatMap((output) => output.files).map(({ name, ...file }) => [name, file]),
  );
  return deliveryIndex.parse({ v: 1, videoId, durationMs, renditions, audio, files });
}

const milliseconds = (track: { timescale: number; segments: readonly (readonly number[])[] }): number =>
  Math.round((track.segments.reduce((sum, segment) => sum + (segment[3] ?? 0), 0) * 1000) / track.timescale);

/** Every chunk has its planned frames, in segments of the planned number of frames. */
function checkFrames(manifest: EncodeManifest, chunks: readonly StoredTrack[], name: string): void {
  if (chunks.length !== manifest.chunks.length) {
    throw wrongOutput(`${name}: ${chunks.length} of ${manifest.chunks.length} chunks`);
  }
  for (const [index, chunk] of chunks.entries()) {
    const planned = manifest.chunks[index]?.frames ?? 0;
    const samples = chunk.segments.map((segment) => segment[4]);
    const frames = samples.reduce((sum, count) => sum + count, 0);
    if (frames !== planned) throw wrongOutput(`${name}: chunk ${index} has ${frames} frames, not ${planned}`);
    const uneven = samples.slice(0, -1).some((count) => count !== manifest.segmentFrames);
    if (uneven || (samples.at(-1) ?? 0) > manifest.segmentFrames) {
      throw wrongOutput(`${name}: chunk ${index} has segments of ${samples.join(', ')} frames`);
    }
  }
}

/** Players switch between renditions at segment edges, which must lie at the same times in all. */
function checkSameEdges(manifest: EncodeManifest, chunked: readonly (readonly StoredTrack[])[]): void {
  const edges = (chunks: readonly StoredTrack[] | undefined): string =>
    JSON.stringify(
      chunks?.map(({ timescale, startTicks, segments }) => [
        timescale,
        startTicks,
        segments.map((segment) => segment[2]),
      ]),
    );
  const first = edges(chunked[0]);
  chunked.forEach((chunks, index) => {
    if (edges(chunks) !== first) {
      throw wrongOutput(`${manifest.renditions[index]?.quality ?? ''} has other segment edges`);
    }
  });
}

/** How much sound may be longer or shorter than the picture: what the planner keeps of it, and a frame of AAC. */
const soundSlackMs = 500;

function checkSoundLength(name: string, soundMs: number, pictureMs: number): void {
  if (Math.abs(soundMs - pictureMs) > soundSlackMs) {
    throw wrongOutput(`the sound ${name} lasts ${soundMs} ms beside ${pictureMs} ms of picture`);
  }
}
