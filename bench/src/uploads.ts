/**
 * Whether any process grows while uploads are started at a steady pace: what each keeps in memory, sampled over the
 * time after a warm-up, the last third beside the first. The services' rubbish is collected before each sample; clips
 * go through all of them meanwhile. Everything is real, on this machine, each service in a process of its own. What is
 * not ours is listed as well; it grows to bounds of its own, as PostgreSQL's shared buffers and the heap of Java.
 *
 *   npm run bench:uploads [-- --minutes 10] [--warm-up 2] [--pace 20] [--samples 6] [--clip-pause 5]
 *
 * `pace` is starts a second, `samples` are of a minute, `warm-up` is minutes too, `clip-pause` seconds between clips.
 */
import { stopOnSignals } from '@millrace/embedded/stack-parts';
import { readFlags } from '../../dev/flags.ts';
import { openBenchStack } from './stack/bench-stack.ts';
import { withInspector } from './stack/inspector.ts';
import { measureUploads } from './stack/measure-uploads.ts';
import { showMemory, worstGrowth } from './stack/show-memory.ts';
import { spread } from './stack/numbers.ts';
import { statusesOf } from './stack/start-load.ts';

const { values } = readFlags('npm run bench:uploads --', {
  options: {
    minutes: { type: 'string', default: '10' },
    'warm-up': { type: 'string', default: '2' },
    pace: { type: 'string', default: '20' },
    samples: { type: 'string', default: '6' },
    'clip-pause': { type: 'string', default: '5' },
  },
});
const minutes = Number(values.minutes);

const signal = stopOnSignals();
const stack = await openBenchStack(signal, { NODE_OPTIONS: withInspector });
try {
  const { processes, starts, clips, cpu } = await measureUploads(stack, {
    ...{
      startsPerSecond: Number(values.pace),
      seconds: 60 * minutes,
      warmUpSeconds: 60 * Number(values['warm-up']),
    },
    ...{
      samplesPerMinute: Number(values.samples),
      clipPauseMs: 1_000 * Number(values['clip-pause']),
      signal,
    },
  });
  console.log(`MiB, the first third of ${minutes} minutes and the last:`);
  for (const line of showMemory(processes)) console.log(`  ${line}`);
  console.log(`  starts, ms (p50 / p99 / worst): ${spread(starts.ms)}; ${statusesOf(starts)}`);
  console.log(`  processors: ${cpu}`);
  console.log(
    `memory over ${minutes} minutes, ${starts.ms.length} upload starts and ${clips} clips: ` +
      `${worstGrowth(processes)} (aim: at most × 1.05)`,
  );
} finally {
  await stack.close();
}
