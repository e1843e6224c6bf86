/**
 * What GET of a video with a key costs in the API, beside bare `node:http` and `pg` that do the same key join in one
 * query: microseconds of CPU (user and system) of the server's own process for each request. Both answer the same
 * bodies from one real PostgreSQL, each from a process of its own, to a load generator in another; they take turns.
 * The API does what the bare server leaves out: rate limits, metrics, its log. What PostgreSQL used is shown apart.
 *
 *   npm run bench:api [-- --requests 20000] [--rounds 5] [--connections 32]
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { readFlags } from '../../dev/flags.ts';
import { type LoadOrder } from './api-load.ts';
import { openApiRecord } from './api-record.ts';
import { type Side, startSide } from './api-side.ts';
import { cpuSecondsBelow } from './cpu.ts';

const { values } = readFlags('npm run bench:api --', {
  options: {
    requests: { type: 'string', default: '20000' },
    rounds: { type: 'string', default: '5' },
    connections: { type: 'string', default: '32' },
  },
});
const requests = Number(values.requests);
const rounds = Number(values.rounds);
const connections = Number(values.connections);

interface Cost {
  /** Microseconds of CPU for one request. */
  server: number;
  postgres: number;
  perSecond: number;
}

const record = await openApiRecord(200);
const load = fork(fileURLToPath(new URL('./api-load.ts', import.meta.url)), { execArgv: [] });

async function send(side: Side, count: number): Promise<number> {
  const order: LoadOrder = { port: side.port, requests: count, connections, targets: record.targets };
  load.send(order);
  const [ms] = (await once(load, 'message')) as [number];
  return ms;
}

async function measure(side: Side): Promise<Cost> {
  // Connections, statements and code are warm: a server runs for weeks.
  await send(side, Math.ceil(requests / 10));
  const before = { server: await side.cpu(), postgres: await cpuSecondsBelow(record.postgresPid) };
  const ms = await send(side, requests);
  return {
    server: ((await side.cpu()) - before.server) / requests,
    postgres: (((await cpuSecondsBelow(record.postgresPid)) - before.postgres) * 1e6) / requests,
    perSecond: requests / (ms / 1000),
  };
}

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
const list = (costs: readonly Cost[], field: keyof Cost): string =>
  costs.map((cost) => cost[field].toFixed(field === 'perSecond' ? 0 : 1)).join(', ');

const sides = [
  await startSide('api', './api-ours.ts', record.connectionString),
  await startSide('bare', './api-bare.ts', record.connectionString),
] as const;
const costs: [Cost[], Cost[]] = [[], []];
try {
  // Until the compilers are done.
  for (const side of sides) await send(side, 2 * requests);
  for (let round = 0; round < rounds; round++) {
    // Who goes first changes, as does what else the machine does.
    for (const which of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      costs[which].push(await measure(sides[which]));
    }
  }
  for (const [n, side] of sides.entries()) {
    const of = costs[n] ?? [];
    console.log(
      `${side.name}: ${list(of, 'server')} µs of CPU a request; PostgreSQL ${list(of, 'postgres')} µs; ` +
        `${list(of, 'perSecond')} requests a second`,
    );
  }
  const [ours, bare] = costs;
  const ratios = (cost: (each: Cost) => number): number[] =>
    ours.map((each, round) => cost(each) / cost(bare[round] ?? each));
  const withPostgres = median(ratios((each) => each.server + each.postgres));
  console.log(`ratio with PostgreSQL's share: ${withPostgres.toFixed(2)}`);
  const all = ratios((each) => each.server);
  console.log(
    `ratio: ${median(all).toFixed(2)} of ${all.map((ratio) => ratio.toFixed(2)).join(', ')} (aim: at most 1.25)`,
  );
} finally {
  load.disconnect();
  await Promise.all(sides.map((side) => side.stop()));
  await record.close();
}
