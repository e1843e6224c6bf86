import { type DeliveryIndex } from '@millrace/contract';
import { encodeManifest, firstBreak } from '@millrace/domain';
import { reachPhase } from '@millrace/platform';
import { findOutputs, finishJob, type FinishOutcome, type StoredOutput } from '@millrace/store';
import { buildIndex } from '../assemble/build-index.ts';
import { patiently } from '../work/patience.ts';
import { wrongOutput } from '../work/trouble.ts';
import { patience, type TaskContext } from './context.ts';
import { mediaOutput } from './outputs.ts';
import { attemptPrefix } from './upload.ts';

/**
 * The last task of a job: checks all outputs against the plan and the object store, writes the delivery index
 * and switches the record to the finished encode.
 */
export async function assembleTask(context: TaskContext): Promise<FinishOutcome> {
  const { task, job, store, objects, signal } = context;
  const manifest = encodeManifest.parse(job.manifest);
  const stored = await patiently(patience(context), () => findOutputs(store, task.jobId));
  const outputs = stored
    .filter(({ kind }) => kind !== 'assemble')
    .sort((a, b) => a.index - b.index)
    .map(({ output }) => mediaOutput.parse(output));
  checkNeighbours(stored);
  const index = buildIndex(task.videoId, manifest, outputs);
  await checkObjects(
    context,
    outputs.flatMap((output) => [...output.tracks, ...output.files]),
  );
  const prefix = await attemptPrefix(context);
  const indexKey = `${prefix}index.json`;
  const body = Buffer.from(JSON.stringify(index));
  await patiently(patience(context), () => objects.put(indexKey, body, { signal }));
  reachPhase('task.stored', () => ({ taskId: task.id, fence: task.fence, kind: task.kind }));
  return patiently(patience(context), () =>
    finishJob(store, task, {
      prefix,
      indexKey,
      qualities: index.renditions.map(({ quality }) => quality),
      durationMs: index.durationMs,
      posterAtSeconds: outputs.find((output) => output.posterAtSeconds !== undefined)?.posterAtSeconds,
      report: { result: resultReport(index) },
    }),
  );
}

/** Each chunk must begin with the very picture that the one before it saw behind its end. */
function checkNeighbours(stored: readonly StoredOutput[]): void {
  const chunks = stored
    .filter(({ kind }) => kind === 'video')
    .sort((a, b) => a.index - b.index)
    .map(({ output }) => mediaOutput.parse(output).edges ?? { first: null, afterLast: null });
  const broken = firstBreak(chunks);
  if (broken !== null) throw wrongOutput(`chunk ${broken} does not begin where the one before it ends`);
}

/** Nothing may be announced that cannot be fetched whole. */
async function checkObjects(
  context: TaskContext,
  expected: readonly { key: string; bytes: number }[],
): Promise<void> {
  for (const { key, bytes } of expected) {
    const found = await patiently(patience(context), () => context.objects.head(key));
    if (found?.sizeBytes !== bytes) {
      throw wrongOutput(`the object ${key} has ${found?.sizeBytes ?? 'no'} bytes, not ${bytes}`);
    }
  }
}

const resultReport = (index: DeliveryIndex): object => ({
  durationSeconds: index.durationMs / 1000,
  renditions: index.renditions.map(({ quality, width, height, frameRate, codec, ...track }) => ({
    ...{ quality, width, height, frameRate, codec },
    segments: track.segments.length,
    bitsPerSecond: track.averageBandwidth,
  })),
  audio: index.audio.map(({ name, language, channels, codec, averageBandwidth }) => ({
    ...{ name, language, channels, codec },
    bitsPerSecond: averageBandwidth,
  })),
});
