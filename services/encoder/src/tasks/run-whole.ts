import { encodeManifest, wholeEncode } from '@millrace/domain';
import { replanVideo } from '@millrace/store';
import { EncoderProcessError } from '../process/encoder-process.ts';
import { patiently } from '../work/patience.ts';
import { TaskTroubleError, troubleOf } from '../work/trouble.ts';
import { patience, type TaskContext } from './context.ts';

/**
 * Whether an attempt's trouble may come of the video being cut into chunks: what was made does not fit, or ffmpeg
 * could make nothing of its part. In one piece the source gets its fair trial.
 */
export function mayBeChunking({ task, job }: TaskContext, error: unknown): boolean {
  if (task.kind !== 'video' && task.kind !== 'assemble') return false;
  if (encodeManifest.parse(job.manifest).chunks.length === 1) return false;
  const ended = error instanceof EncoderProcessError && error.end === 'exit';
  return (
    (ended || error instanceof TaskTroubleError) && ['source', 'encoding'].includes(troubleOf(error).kind)
  );
}

/** Lets the video be made anew in one piece, from the same plan otherwise. */
export async function runWhole(context: TaskContext, error: unknown): Promise<'replanned' | 'lost'> {
  const { task, job, store, logger } = context;
  const chunked = encodeManifest.parse(job.manifest);
  const manifest = wholeEncode(chunked);
  logger.warn({ err: error }, 'the video is made in one piece');
  const note = {
    code: 'encoded_whole',
    text: 'The parts of the video did not fit together; it was encoded in one piece.',
  };
  return patiently(patience(context), () =>
    replanVideo(store, task, {
      manifest,
      videoTasks: manifest.tasks.filter(({ kind }) => kind === 'video'),
      forget: chunked.chunks.map((_, index) => `video-${index}`),
      report: { whole: { notes: [note] } },
    }),
  );
}
