import { deliveryIndex, type DeliveryIndex, type DeliveryTrack } from '@millrace/contract';
import { type EncodeManifest } from '@millrace/domain';
import { type MediaOutput, type StoredTrack } from '../tasks/outputs.ts';
import { wrongOutput } from '../work/trouble.ts';
import { bandwidths, joinTrack, mergeSliver } from './delivery-track.ts';

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
    const track = mergeSliver(endWithPicture(joinTrack(name, chunks), durationMs));
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

/**
 * Every chunk has its planned frames, in segments of the planned number of frames. Only the last may have fewer,
 * when the end of the source is damaged.
 */
function checkFrames(manifest: EncodeManifest, chunks: readonly StoredTrack[], name: string): void {
  if (chunks.length !== manifest.chunks.length) {
    throw wrongOutput(`${name}: ${chunks.length} of ${manifest.chunks.length} chunks`);
  }
  for (const [index, chunk] of chunks.entries()) {
    const planned = manifest.chunks[index]?.frames ?? 0;
    const samples = chunk.segments.map((segment) => segment[4]);
    const frames = samples.reduce((sum, count) => sum + count, 0);
    const last = index === chunks.length - 1;
    if (last ? frames > planned : frames !== planned) {
      throw wrongOutput(`${name}: chunk ${index} has ${frames} frames, not ${planned}`);
    }
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

/** Leaves out segments of sound that begin when the picture has ended (its damaged end was left out). */
function endWithPicture(track: DeliveryTrack, pictureMs: number): DeliveryTrack {
  let startTicks = 0;
  const segments = track.segments.filter(([, , , ticks]) => {
    const begins = (startTicks * 1000) / track.timescale;
    startTicks += ticks;
    return begins < pictureMs;
  });
  return segments.length === track.segments.length
    ? track
    : { ...track, segments, ...bandwidths(segments, track.timescale) };
}

/** How much sound may be shorter than the picture: some frames of AAC, and what the planner rounds. */
const soundSlackMs = 500;

function checkSoundLength(name: string, soundMs: number, pictureMs: number): void {
  if (soundMs < pictureMs - soundSlackMs) {
    throw wrongOutput(`the sound ${name} lasts ${soundMs} ms beside ${pictureMs} ms of picture`);
  }
}
