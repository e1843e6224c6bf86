import { type Metrics } from '@millrace/platform';
import { type EncodeTime } from '@millrace/store';

/** What an attempt tells of how it ended. Made with the encoder, so that each series is there before its first event. */
export function attemptMeasures(metrics: Metrics) {
  const troubles = metrics.counter(
    'millrace_encode_troubles_total',
    'Attempts that ended in trouble, by its kind and what became of the task.',
    ['kind', 'outcome'],
  );
  for (const kind of ['source', 'encoding', 'room', 'infrastructure'])
    for (const outcome of ['retry', 'failed']) troubles.inc({ kind, outcome }, 0);
  const seconds = metrics.histogram(
    'millrace_video_ready_seconds',
    'From the completed upload until the video is ready.',
    [5, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400],
  );
  const relative = metrics.histogram(
    'millrace_video_ready_relative',
    'Until the video is ready, in lengths of it (of one minute at least), from the completed upload, or from when its account was below the jobs at once of its plan.',
    [0.25, 0.5, 1, 2, 3, 5, 10, 30],
  );
  return {
    /**
     * `infrastructure` and `room` are our own: an alert stands on them, and each `failed` among them is a video lost
     * to us.
     */
    trouble: (kind: string, outcome: string): void => troubles.inc({ kind, outcome }),
    ready: ({ tookSeconds, turnSeconds, durationSeconds }: EncodeTime): void => {
      seconds.observe(tookSeconds);
      relative.observe(turnSeconds / Math.max(durationSeconds, shortestSeconds));
    },
  };
}

/** A clip of some seconds waits for machines, not for its length. */
const shortestSeconds = 60;
