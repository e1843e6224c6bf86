/**
 * What durable delivery costs, and what one dead receiver costs the others, on a real PostgreSQL and over real
 * HTTP to a receiver in a process of its own. In one run and taking turns:
 *
 * 1. the webhooks service: claimed, signed, sent and recorded;
 * 2. a bare undici loop: the same bodies to the same receiver, nothing else;
 * 3. a sender that takes one row at a time and sends with `fetch`.
 *
 * Then deliveries at a steady pace, with and without one endpoint that never answers, and the others' latency from
 * the event's insertion to its arrival.
 *
 *   npm run bench:webhooks [-- --endpoints 200] [--events 12000] [--rounds 3] [--seconds 15]
 */
import { readFlags } from '../../dev/flags.ts';
import { measureFairness } from './webhook-fairness.ts';
import { startReceiver } from './webhook-receiver-process.ts';
import { openBenchRecord } from './webhook-record.ts';
import { measureThroughput } from './webhook-throughput.ts';

const { values } = readFlags('npm run bench:webhooks --', {
  options: {
    endpoints: { type: 'string', default: '1000' },
    events: { type: 'string', default: '24000' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '15' },
  },
});
const rounds = Number(values.rounds);

/** Of each round, whose parts share what else the machine does, and the middle one. */
function showRatio(name: string, ours: readonly number[], theirs: readonly number[], aim: string): void {
  const ratios = ours.map((value, round) => value / (theirs[round] ?? Number.NaN)).sort((a, b) => a - b);
  const middle = ratios[Math.floor(ratios.length / 2)] ?? Number.NaN;
  const all = ratios.map((ratio) => ratio.toFixed(2)).join(', ');
  console.log(`${name}: ${middle.toFixed(2)} of ${all} (aim: ${aim})`);
}

const receiver = await startReceiver();
const record = await openBenchRecord();
try {
  const options = { endpoints: Number(values.endpoints), events: Number(values.events), rounds };
  const rate = await measureThroughput({ record, receiver }, options);
  const show = (name: string, perSecond: readonly number[]): void => {
    console.log(`${name}: ${perSecond.map((each) => each.toFixed(0)).join(', ')} a second`);
  };
  show('webhooks service', rate.service);
  show('bare undici loop', rate.bare);
  show('fetch, row by row', rate.rowByRow);
  showRatio('ratio to undici', rate.service, rate.bare, 'at least 0.6');
  showRatio('ratio to fetch', rate.service, rate.rowByRow, 'at least 5');

  const p99 = await measureFairness({ record, receiver }, { seconds: Number(values.seconds), rounds });
  const texts = (each: readonly number[]): string => each.map((ms) => ms.toFixed(1)).join(', ');
  console.log(`p99 alone: ${texts(p99.alone)} ms; beside a hanging endpoint: ${texts(p99.beside)} ms`);
  showRatio('ratio of p99', p99.beside, p99.alone, 'at most 1.2');
} finally {
  await record.close();
  receiver.stop();
}
