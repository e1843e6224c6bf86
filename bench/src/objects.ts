/**
 * What objects cost behind S3 beside a folder: MiB per second, and CPU milliseconds of this process per MiB, of puts
 * and gets as the services make them, and of signing part URLs. The two take turns; the S3 server's own CPU is not
 * counted.
 *
 *   npm run objects --workspace bench [-- --rounds 5]
 */
import { createSecretKey, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { type ObjectStore } from '@millrace/objects';
import { createFolderObjectStore } from '@millrace/objects/folder';
import { createS3ObjectStore } from '@millrace/objects/s3';
import { silentLogger, systemClock } from '@millrace/platform';
import { readFlags } from '../../dev/flags.ts';
import { createBucket } from '../../dev/s3/bucket.ts';
import { startS3Server } from '../../dev/s3/server.ts';

const { values } = readFlags('npm run objects --workspace bench --', {
  options: { rounds: { type: 'string', default: '5' } },
});
const rounds = Number(values.rounds);

const mebibyte = 1024 ** 2;
const large = randomBytes(64 * mebibyte);
const small = large.subarray(0, mebibyte);
const blockBytes = 8 * mebibyte;

interface Spent {
  seconds: number;
  cpuMs: number;
}
type Work = () => Promise<void>;

async function spend(work: Work): Promise<Spent> {
  const [startedAt, before] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(before);
  return { seconds: (performance.now() - startedAt) / 1_000, cpuMs: (user + system) / 1_000 };
}

async function drain(stream: Readable): Promise<void> {
  stream.resume();
  await once(stream, 'end');
}

function* chunksOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}

/** Each puts or gets 64 MiB. */
const worksOn = (store: ObjectStore): Record<string, Work> => ({
  'put a stream of 64 MiB': async () => {
    await store.put('bench/large', Readable.from(chunksOf(large)), { sizeBytes: large.length });
  },
  'put 64 × 1 MiB, 4 at once': async () => {
    const numbers = Array.from({ length: 64 }, (_, n) => n).values();
    const worker = async (): Promise<void> => {
      for (const n of numbers) await store.put(`bench/small/${n}`, small);
    };
    await Promise.all([worker(), worker(), worker(), worker()]);
  },
  'get 64 MiB': async () => drain((await store.get('bench/large')).stream),
  'get 8 ranges of 8 MiB': async () => {
    for (let start = 0; start < large.length; start += blockBytes) {
      const range = { start, end: start + blockBytes - 1 };
      await drain((await store.get('bench/large', { range })).stream);
    }
  },
});

async function signUrls(store: ObjectStore): Promise<void> {
  const expiresAt = new Date(Date.now() + 3_600_000);
  const uploadId = await store.createUpload('bench/upload');
  for (let partNumber = 1; partNumber <= 8_000; partNumber += 1) {
    await store.presignPart({ key: 'bench/upload', uploadId, partNumber, expiresAt });
  }
  await store.abort({ key: 'bench/upload', uploadId });
}

const root = await mkdtemp(path.join(tmpdir(), 'millrace-bench-objects-'));
const key = createSecretKey(randomBytes(32));
const folder = await createFolderObjectStore({
  root,
  publicUrl: 'http://127.0.0.1:1',
  keys: { signing: { kid: 'bench', key }, byKid: new Map([['bench', key]]) },
  clock: systemClock,
  logger: silentLogger,
});
const server = await startS3Server();
const options = await createBucket(server);
const s3 = createS3ObjectStore(options);

/** Neighbours on the machine only ever add: the least of several runs is nearest to what the work costs. */
const least = (runs: readonly Spent[], what: keyof Spent): number =>
  Math.min(...runs.map((run) => run[what]));

try {
  const stores = { folder, s3 };
  const spent = new Map<string, Record<keyof typeof stores, Spent[]>>();
  for (let round = 0; round < rounds; round += 1) {
    for (const name of ['folder', 's3'] as const) {
      const store = stores[name];
      for (const [what, work] of Object.entries(worksOn(store))) {
        const runs = spent.get(what) ?? { folder: [], s3: [] };
        spent.set(what, runs);
        runs[name].push(await spend(work));
      }
    }
  }
  for (const [what, runs] of spent) {
    const [a, b] = [runs.folder, runs.s3].map((each) => ({
      seconds: least(each, 'seconds'),
      cpuMs: least(each, 'cpuMs'),
    })) as [Spent, Spent];
    const rate = ({ seconds }: Spent): string => (64 / seconds).toFixed(0);
    console.log(
      `${what}: folder ${rate(a)}, S3 ${rate(b)} MiB/s; CPU per MiB ${(a.cpuMs / 64).toFixed(2)} and ` +
        `${(b.cpuMs / 64).toFixed(2)} ms, ratio ${(b.cpuMs / a.cpuMs).toFixed(2)}`,
    );
  }
  for (const name of ['folder', 's3'] as const) {
    const { seconds, cpuMs } = await spend(() => signUrls(stores[name]));
    console.log(`8,000 part URLs of ${name}: ${seconds.toFixed(2)} s, ${cpuMs.toFixed(0)} ms of CPU`);
  }
} finally {
  await s3.close();
  await server.stop();
  await folder.close();
  await rm(root, { recursive: true });
}
