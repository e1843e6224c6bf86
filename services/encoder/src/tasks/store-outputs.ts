import path from 'node:path';
import { type EncodeManifest, type TaskOutput } from '@millrace/domain';
import { type CmafFile, readCmafFile } from '../cmaf/cmaf-file.ts';
import { MalformedBoxError } from '../cmaf/boxes.ts';
import { sourceTrouble, wrongOutput } from '../work/trouble.ts';
import { type TaskContext } from './context.ts';
import { type MediaOutput, type StoredTrack } from './outputs.ts';
import { attemptPrefix, uploadFile } from './upload.ts';

/**
 * Checks what ffmpeg wrote and moves it into the object store, under this attempt's own prefix.
 * @throws TaskTroubleError when a file is not what was planned
 */
export async function storeOutputs(
  context: TaskContext,
  { manifest, folder, outputs }: { manifest: EncodeManifest; folder: string; outputs: readonly TaskOutput[] },
): Promise<Pick<MediaOutput, 'tracks' | 'files'> & { prefix: string }> {
  const prefix = await attemptPrefix(context);
  const stored: Pick<MediaOutput, 'tracks' | 'files'> = { tracks: [], files: [] };
  for (const output of outputs) {
    const key = `${prefix}${output.file}`;
    const track =
      output.kind === 'poster' ? null : await readTrack(context, { manifest, folder, output, key });
    const bytes = await uploadFile(context, { folder, file: output.file, key });
    if (track === null) stored.files.push({ name: output.file, key, bytes, contentType: 'image/jpeg' });
    else if (track.bytes === bytes) stored.tracks.push(track);
    else throw wrongOutput(`${output.file}: ${bytes} of ${track.bytes} bytes were stored`);
  }
  return { prefix, ...stored };
}

async function readTrack(
  context: TaskContext,
  {
    manifest,
    folder,
    output,
    key,
  }: { manifest: EncodeManifest; folder: string; output: TaskOutput; key: string },
): Promise<StoredTrack> {
  const file = await readCmafFile(path.join(folder, output.file)).catch((error: unknown) => {
    if (error instanceof MalformedBoxError) throw wrongOutput(`${output.file}: ${error.message}`);
    throw error;
  });
  if (output.kind === 'rendition') checkRendition(manifest, context.task.index, { file, output });
  else checkSound(file, output);
  return {
    kind: output.kind === 'rendition' ? 'rendition' : 'audio',
    index: output.index,
    key,
    bytes: file.bytes,
    init: [0, file.initBytes],
    initHash: file.initHash,
    codec: file.codec,
    timescale: file.timescale,
    startTicks: file.fragments[0]?.startTicks ?? 0,
    segments: file.fragments.map(({ offset, bytes, ticks, samples, keyBytes }) => [
      offset,
      bytes,
      ticks,
      output.kind === 'rendition' ? keyBytes : 0,
      samples,
    ]),
  };
}

/** Segments follow each other without a gap, each begins with a picture that decodes by itself, none is missing. */
function checkRendition(
  manifest: EncodeManifest,
  chunkIndex: number,
  { file, output }: { file: CmafFile; output: TaskOutput },
): void {
  const planned = manifest.chunks[chunkIndex]?.frames ?? 0;
  const rendition = manifest.renditions[output.index];
  const frames = file.fragments.reduce((sum, fragment) => sum + fragment.samples, 0);
  const last = chunkIndex === manifest.chunks.length - 1;
  if (last && frames < planned / 2) {
    const message = 'Most pictures of the video cannot be decoded: the file is damaged. Export it again.';
    throw sourceTrouble({ code: 'invalid_file', message }, 'corrupt');
  }
  // What a damaged end does not give is left out; the length of the video is what there is.
  if (last ? frames > planned : frames !== planned) {
    throw wrongOutput(`${output.file}: ${frames} of ${planned} frames`);
  }
  if (file.size?.width !== rendition?.width || file.size?.height !== rendition?.height) {
    throw wrongOutput(`${output.file}: pictures of ${JSON.stringify(file.size)}`);
  }
  if (file.fragments.some((fragment) => !fragment.sync)) {
    throw wrongOutput(`${output.file}: a segment does not begin with a key frame`);
  }
  checkContinuity(file, output);
}

function checkSound(file: CmafFile, output: TaskOutput): void {
  if (file.fragments.length === 0) throw wrongOutput(`${output.file}: there is no sound`);
  checkContinuity(file, output);
}

function checkContinuity({ fragments }: CmafFile, output: TaskOutput): void {
  let expected = fragments[0]?.startTicks ?? 0;
  for (const [index, { startTicks, ticks }] of fragments.entries()) {
    if (startTicks !== expected) {
      throw wrongOutput(`${output.file}: segment ${index} begins at tick ${startTicks}, not ${expected}`);
    }
    expected = startTicks + ticks;
  }
}
