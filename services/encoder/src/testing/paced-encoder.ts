import { createSecretKey, randomBytes } from 'node:crypto';
import { createMemoryBus } from '@millrace/bus/memory';
import { createFolderObjectStore } from '@millrace/objects/folder';
import { createMetrics, silentLogger, systemClock } from '@millrace/platform';
import { createDatabase } from '@millrace/store';
import { createEncoder, encoderConfig, type EncoderProcess } from '../index.ts';
import { createFfmpegProcess } from '../process/fluent-ffmpeg-process.ts';

/** ffmpeg as it is, but posters so slowly that a test can reach in: a second of the video takes ten. */
export function slowPosters(): EncoderProcess {
  const real = createFfmpegProcess();
  return {
    run: (args, limits, options) => {
      const slow = args.some((arg) => arg.endsWith('poster.jpg')) ? ['-readrate', '0.1'] : [];
      return real.run([...slow, ...args], limits, options);
    },
  };
}

/** An encoder to be killed, which works until then. */
async function main([
  connectionString = '',
  root = '',
  scratch = '',
  pace,
]: readonly string[]): Promise<void> {
  const key = createSecretKey(randomBytes(32));
  const encoder = createEncoder({
    config: encoderConfig.parse({
      ...{ ENCODER_SLOTS: '1', ENCODER_THREADS: '1', ENCODER_IDLE_MS: '20' },
      ...{ ENCODER_LEASE_MS: '1000', ENCODER_SCRATCH_DIR: scratch },
    }),
    store: createDatabase({ connectionString, logger: silentLogger }),
    bus: createMemoryBus(),
    objects: await createFolderObjectStore({
      ...{ root, publicUrl: 'http://127.0.0.1:1', clock: systemClock, logger: silentLogger, minFreeBytes: 0 },
      keys: { signing: { kid: 'test', key }, byKid: new Map([['test', key]]) },
    }),
    ...{ clock: systemClock, logger: silentLogger, metrics: createMetrics({ service: 'encoder' }) },
    process: pace === 'slow' ? slowPosters() : createFfmpegProcess(),
  });
  await encoder.start(new AbortController().signal);
}

if (process.argv[1] === import.meta.filename) await main(process.argv.slice(2));
