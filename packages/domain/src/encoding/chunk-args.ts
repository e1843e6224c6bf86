import { toNumber } from './rational.ts';
import { type EncodeManifest, type ManifestChunk } from './types.ts';

/**
 * What lets chunks of a video be encoded apart: each reads from the key frame before its pictures only, and says
 * what its pictures at both edges are, before encoding, so that neighbours can be compared.
 */

/** Decoding begins this much before a chunk, so that filters that look back have seen what they would have. */
const leadInSeconds = 1;

/**
 * Options before the input: from the key frame at or before a second (unless told) ahead of the chunk. Nothing before the
 * chunk's first picture is cut here: pictures keep their times, and the grid counts its frames from presentation
 * zero, wherever reading begins.
 */
export function seekArgs(
  manifest: EncodeManifest,
  { firstFrame }: ManifestChunk,
  leadSeconds = leadInSeconds,
): string[] {
  if (firstFrame === 0) return [];
  const at = manifest.zeroSeconds + firstFrame / toNumber(manifest.frameRate) - leadSeconds;
  return ['-noaccurate_seek', '-seek_timestamp', '1', '-ss', at.toFixed(6)];
}

/** Hashes of decoded, filtered pictures; null where there is none. */
export interface ChunkEdges {
  first: string | null;
  /** Of the picture behind the last, which is the next chunk's first. */
  afterLast: string | null;
}

interface EdgeHashes {
  /** The frames to filter: the chunk's and the one behind. */
  reach: ManifestChunk;
  /** Follows the filters of the pictures, and leaves the chunk's own. */
  graph: string;
  /** The output with the hashes. */
  args: string[];
}

/** Hashes of a chunk's edges into a file. */
export function hashEdges({ firstFrame, frames }: ManifestChunk, path: string): EdgeHashes {
  const edges = `[edges]select='eq(n,0)+eq(n,${frames})'[hashed]`;
  return {
    reach: { firstFrame, frames: frames + 1 },
    graph: `,split=2[chunk][edges];${edges};[chunk]trim=end_frame=${frames}`,
    args: ['-map', '[hashed]', '-fps_mode', 'passthrough', '-f', 'framehash', '-hash', 'sha256', path],
  };
}

/** Reads what the command of a chunk wrote: lines of `stream, dts, pts, duration, size, hash`, pts in frames. */
export function readEdges(text: string, { firstFrame, frames }: ManifestChunk): ChunkEdges {
  const hashes = new Map(
    text
      .split('\n')
      .filter((line) => !line.startsWith('#'))
      .map((line) => line.split(',').map((field) => field.trim()))
      .map(([, , pts, , , hash]) => [Number(pts), hash ?? ''] as const),
  );
  return { first: hashes.get(firstFrame) ?? null, afterLast: hashes.get(firstFrame + frames) ?? null };
}

/** The index of the first chunk that does not go on where the one before it ended, or null when all do. */
export function firstBreak(chunks: readonly ChunkEdges[]): number | null {
  const broken = chunks.findIndex(({ first }, index) => {
    const before = chunks[index - 1];
    return before !== undefined && (first === null || first !== before.afterLast);
  });
  return broken < 0 ? null : broken;
}
