/**
 * How long a change of a video takes from its commit to a consumer, through the outbox, the reconciler's relay and
 * Kafka, at a steady pace: holds that are placed and lifted, at the consumers' end of `millrace.playback.state` and
 * `millrace.video.events`. Beside it, taking turns on the same broker, a bare kafkajs producer and consumer with as
 * many messages a second. Everything is real, on this machine, each service in a process of its own.
 *
 *   npm run bench:changes [-- --pace 200] [--seconds 30] [--rounds 3]
 */
import { stopOnSignals } from '@millrace/embedded/stack-parts';
import { readFlags } from '../../dev/flags.ts';
import { openBenchStack } from './stack/bench-stack.ts';
import { measureChanges } from './stack/measure-changes.ts';
import { median, percentile, spread } from './stack/numbers.ts';

const { values } = readFlags('npm run bench:changes --', {
  options: {
    pace: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '30' },
    rounds: { type: 'string', default: '3' },
  },
});
const [perSecond, seconds, rounds] = [values.pace, values.seconds, values.rounds].map(Number) as [
  number,
  number,
  number,
];
const aimMs = 250;

const signal = stopOnSignals();
const stack = await openBenchStack(signal);
const p99s: { ours: number; bare: number }[] = [];
try {
  for await (const round of measureChanges(stack, { perSecond, seconds, rounds, signal })) {
    const { state, events, bare, cpu } = round;
    console.log(
      `round ${p99s.length + 1}, ms (p50 / p99 / worst) from the commit, ${perSecond} changes a second:`,
    );
    console.log(`  to a consumer of the playback state: ${spread(state.toConsumer)}`);
    console.log(`    of which until the relay sent it: ${spread(state.toProducer)}`);
    console.log(`  to a consumer of the video events: ${spread(events.toConsumer)}`);
    console.log(`  bare kafkajs, from send to consumer: ${spread(bare.toConsumer)}`);
    console.log(`  processors: ${cpu}`);
    const p99 = (ms: readonly number[]): number => percentile(ms, 0.99);
    const ours = Math.max(p99(state.toConsumer), p99(events.toConsumer));
    p99s.push({ ours, bare: p99(bare.toConsumer) });
  }
  const [ours, bare] = [median(p99s.map((each) => each.ours)), median(p99s.map((each) => each.bare))];
  console.log(
    `from commit to consumer, p99 at ${perSecond} changes a second: ${ours.toFixed(1)} ms (aim: under ${aimMs}), ` +
      `of ${p99s.map((each) => each.ours.toFixed(1)).join(', ')}; bare Kafka ${bare.toFixed(1)} ms, ` +
      `ratio ${median(p99s.map((each) => each.ours / each.bare)).toFixed(2)}`,
  );
} finally {
  await stack.close();
}
