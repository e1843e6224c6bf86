/**
 * How long a hold takes until the CDN refuses the video, while viewers watch it and others and the API is used. The
 * time begins with the team's request, so that the record's part and the API's are in it; the CDN is asked again and
 * again once that is answered. The same for the lifting. Everything is real, on this machine, each service in a process
 * of its own.
 *
 *   npm run bench:holds [-- --holds 200] [--videos 4] [--viewers 400] [--api 100]
 *
 * `pace` is holds a second at most, `viewers` and `api` are requests a second.
 */
import { stopOnSignals } from '@millrace/embedded/stack-parts';
import { readFlags } from '../../dev/flags.ts';
import { openBenchStack } from './stack/bench-stack.ts';
import { measureHolds } from './stack/measure-holds.ts';
import { percentile, spread } from './stack/numbers.ts';
import { statusesOf } from './stack/start-load.ts';

const { values } = readFlags('npm run bench:holds --', {
  options: {
    holds: { type: 'string', default: '200' },
    pace: { type: 'string', default: '10' },
    videos: { type: 'string', default: '4' },
    viewers: { type: 'string', default: '400' },
    api: { type: 'string', default: '100' },
  },
});
const aimMs = 2_000;

const signal = stopOnSignals();
const stack = await openBenchStack(signal);
try {
  const { toRefusal, toPlaying, load, cpu } = await measureHolds(stack, {
    ...{ holds: Number(values.holds), videos: Number(values.videos) },
    ...{ holdsPerSecond: Number(values.pace), warmUpMs: 5_000 },
    ...{ viewersPerSecond: Number(values.viewers), apiPerSecond: Number(values.api), signal },
  });
  console.log(`ms (p50 / p99 / worst) from the team's request, of ${toRefusal.length} holds:`);
  console.log(`  of a hold until the CDN refused: ${spread(toRefusal)}`);
  console.log(`  of a lift until it played again: ${spread(toPlaying)}`);
  for (const [name, answers] of Object.entries(load)) {
    console.log(`  ${name} meanwhile: ${spread(answers.ms)}; ${statusesOf(answers)}`);
  }
  console.log(`  processors: ${cpu}`);
  const [p99, viewers] = [percentile(toRefusal, 0.99), percentile(load['viewers']?.ms ?? [], 0.99)];
  const inTime = toRefusal.filter((ms) => ms < aimMs).length;
  console.log(
    `hold to refusal at the CDN, p99 of ${toRefusal.length}: ${p99.toFixed(1)} ms (aim: under ${aimMs}), ` +
      `${inTime} in time; ratio to a viewer's request ${(p99 / viewers).toFixed(2)}`,
  );
} finally {
  await stack.close();
}
