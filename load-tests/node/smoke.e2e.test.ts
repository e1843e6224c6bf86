import { type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { missingForKafka } from '../../dev/kafka/jars.ts';
import { describeWith } from '../../dev/real-part.ts';
import { missingForS3 } from '../../dev/s3/versitygw.ts';
import { startTestStack, type TestStack } from '../../e2e/src/testing/test-stack.ts';
import { type ObjectiveName } from '../src/objectives.ts';
import { type TestName } from '../src/tests.ts';
import { type LoadedTest, loadTest } from './k6-run.ts';

/** How long things take says nothing of the service here: the machine is busy with other tests. */
const ofTime: readonly ObjectiveName[] = [
  ...(['ready_in_time', 'hold_in_time', 'webhook_in_time', 'webhook_delivered', 'playback_smooth'] as const),
];
const main = fileURLToPath(new URL('main.ts', import.meta.url));
const patienceMs = 180_000;

let stack: TestStack;
/** `npm run load:customer`, which keeps the receivers. */
let customer: ChildProcessByStdio<null, Readable, null> | undefined;
let folder: string;
let environment: Record<string, string>;

/** 9 s in two segments and two qualities, which is encoded in a moment. */
async function makeFilm(path: string): Promise<void> {
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=size=1280x720:rate=5:duration=9'];
  const sound = ['-f', 'lavfi', '-i', 'sine=duration=9'];
  const encoding = ['-c:v', 'libx264', '-preset', 'ultrafast', '-c:a', 'aac'];
  await promisify(execFile)('ffmpeg', ['-v', 'error', ...picture, ...sound, ...encoding, path]);
}

const envFile = (): string => join(folder, 'load.env');

/** As a shell reads them. */
async function readVariables(path: string): Promise<Record<string, string>> {
  const script = `. '${path}' && exec '${process.execPath}' -p 'JSON.stringify(process.env)'`;
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', script], { env: {} });
  return JSON.parse(stdout) as Record<string, string>;
}

const isOver = (): boolean =>
  customer === undefined || customer.exitCode !== null || customer.signalCode !== null;

async function endCustomer(): Promise<number | null> {
  customer?.kill('SIGTERM');
  await waitFor(isOver, { what: 'its end' });
  return customer?.exitCode ?? null;
}

describeWith(missingForKafka() ?? missingForS3(), 'on the stack', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-load-'));
    const film = join(folder, 'film.mp4');
    stack = await startTestStack({ env: { API_RATE_PER_MINUTE: '1000000' } });
    const { dataDir, readyFile } = stack;
    await makeFilm(film);
    const flags = ['--ready-file', readyFile, '--output', envFile(), '--data', dataDir];
    customer = spawn(process.execPath, [main, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
    const { stdout } = customer;
    await waitFor(() => stdout.readableLength > 0 || isOver(), { timeoutMs: 60_000, what: 'its word' });
    expect(customer.exitCode).toBeNull();
    environment = {
      ...{ ...(await readVariables(envFile())), SOURCE: film, SOURCE_SECONDS: '60', PROFILE: 'smoke' },
      // Short visits with all that players do: each segment in another quality, seeks, and a token that is renewed.
      ...{ WATCH_SECONDS: '6', BUFFER_SECONDS: '1', TOKEN_SECONDS: '60', RENEW_BEFORE_SECONDS: '58' },
      ...{ SWITCH_EVERY: '1', SEEK_EVERY: '2', QUIET_SECONDS: '1' },
    };
  }, 20 * 60_000);
  afterAll(async () => {
    await Promise.all([(stack as TestStack | undefined)?.stop(), endCustomer()]);
    await rm(folder, { recursive: true });
  }, patienceMs);

  it(
    'every load test runs against the stack, measures what it judges, and finds nothing wrong',
    async () => {
      const times = {
        'api-mix': { iterations: 60, atOnce: 4 },
        upload: { iterations: 1, atOnce: 1 },
        playback: { iterations: 3, atOnce: 3 },
        'hold-under-load': { iterations: 1, atOnce: 1 },
        'webhook-storm': { iterations: 1, atOnce: 1 },
      } as const satisfies Record<TestName, Parameters<LoadedTest['run']>[0]>;
      const loaded = new Map<TestName, LoadedTest>();
      for (const name of Object.keys(times) as TestName[]) {
        // One viewer who seeks all the time may have nothing to tell of smoothness.
        const seeks = name === 'hold-under-load' ? { SEEK_EVERY: '0' } : {};
        loaded.set(name, await loadTest(name, { ...environment, ...seeks }));
      }
      const results = await Promise.all(
        [...loaded].map(async ([name, test]) => ({ name, ...(await test.run(times[name])) })),
      );
      for (const { name, crossed, samples } of results) {
        const wrong = crossed.filter((metric) => !ofTime.some((objective) => objective === metric));
        expect({ name, wrong }).toEqual({ name, wrong: [] });
        // All of the time ones were measured: else their `_events` would be crossed.
        expect(samples.get('completed')?.length).toBeGreaterThan(0);
      }
      const of = (name: TestName, metric: string): number =>
        results.find((result) => result.name === name)?.samples.get(metric)?.length ?? 0;
      expect(of('playback', 'quality_switches')).toBeGreaterThan(0);
      expect(of('playback', 'token_renewals')).toBeGreaterThan(0);
      expect(of('hold-under-load', 'lift')).toBe(1);
      expect(of('webhook-storm', 'webhook_in_time')).toBe(10);
    },
    patienceMs,
  );

  it('the service has none of their videos and endpoints left', async () => {
    const { API_URL = '', PROJECT_ID = '', API_KEY = '' } = environment;
    for (const list of ['videos', 'webhook-endpoints']) {
      const answer = await fetch(`${API_URL}/v1/projects/${PROJECT_ID}/${list}`, {
        headers: { authorization: `Bearer ${API_KEY}` },
      });
      expect(await answer.json()).toMatchObject({ data: [] });
    }
  });

  it('the customer’s key is in a file for nobody else, until the receivers end', async () => {
    expect(statSync(envFile()).mode & 0o777).toBe(0o600);
    expect(await endCustomer()).toBe(0);
    expect(existsSync(envFile())).toBe(false);
  });
});
