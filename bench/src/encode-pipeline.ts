/** The pipeline's side of `encode.ts`: `node encode-pipeline.ts SOURCE FOLDER PRESET`, prints JSON. */
import { createReadStream } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createMemoryBus } from '../../packages/bus/src/memory/memory-bus.ts';
import { createEncoder, createFfmpegProcess, encoderConfig, type EncoderProcess } from '@millrace/encoder';
import { createMetrics, silentLogger, systemClock } from '@millrace/platform';
import { createDatabase, createEncodeJob } from '@millrace/store';
import { createTestDatabase, createTestObjects, seedAccount, seedProcessingVideo } from '@millrace/testing';
import { cpuSecondsOf } from './cpu.ts';

const [source = '', folder = '', preset = ''] = process.argv.slice(2);

const testDatabase = await createTestDatabase();
const store = createDatabase({ connectionString: testDatabase.connectionString, logger: silentLogger });
const stored = await createTestObjects();
const bus = createMemoryBus();

// One slot: tasks follow each other, so that what the pictures cost can be told apart.
let picturesCpuSeconds = 0;
const ffmpeg = createFfmpegProcess();
const measured: EncoderProcess = {
  run: async (args, limits, options) => {
    const before = await cpuSecondsOf('children');
    const result = await ffmpeg.run(args, limits, options);
    if (args.some((arg) => arg.endsWith('poster.jpg'))) {
      picturesCpuSeconds += (await cpuSecondsOf('children')) - before;
    }
    return result;
  },
};
const encoder = createEncoder({
  config: encoderConfig.parse({
    ENCODER_SLOTS: '1',
    ENCODER_PRESET: preset,
    ENCODER_SCRATCH_DIR: path.join(folder, 'scratch'),
  }),
  ...{ store, bus, objects: stored.objects, clock: systemClock, logger: silentLogger },
  metrics: createMetrics({ service: 'encoder' }),
  process: measured,
});

const account = await seedAccount(store);
const sourceKey = 'videos/bench/original/source';
await stored.objects.put(sourceKey, createReadStream(source));
const videoId = await seedProcessingVideo(store, account, { sourceKey });
await store.transaction((tx) => createEncodeJob(tx, { videoId, accountId: account.accountId }));

const total = async (): Promise<number> => (await cpuSecondsOf('self')) + (await cpuSecondsOf('children'));
const before = await total();
const startedAt = performance.now();
await encoder.start(new AbortController().signal);
const manifest = await succeeded();
const cpuSeconds = (await total()) - before - picturesCpuSeconds;
const wallSeconds = (performance.now() - startedAt) / 1000;

await encoder.stop();
await bus.close();
await stored.close();
await store.close();
await testDatabase.drop();
process.stdout.write(JSON.stringify({ cpuSeconds, picturesCpuSeconds, wallSeconds, manifest }));

/** Asks rarely: what asking costs is counted with the rest. */
async function succeeded(): Promise<unknown> {
  for (;;) {
    const { rows } = await store.query<{ state: string; manifest: unknown }>(
      'select state, manifest from encode_jobs where video_id = $1',
      [videoId],
    );
    if (rows[0]?.state === 'succeeded') return rows[0].manifest;
    if (rows[0]?.state !== 'running') throw new Error('the encode did not succeed');
    await pause(250);
  }
}
