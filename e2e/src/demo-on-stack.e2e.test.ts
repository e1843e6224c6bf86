import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { missingForKafka } from '../../dev/kafka/jars.ts';
import { describeWith } from '../../dev/real-part.ts';
import { missingForS3 } from '../../dev/s3/versitygw.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const film = join(root, 'packages/testing/media/short_0_2s.mp4');

describeWith(missingForKafka() ?? missingForS3(), 'npm run demo -- --stack', () => {
  it(
    'does the main job on Kafka, S3 and a process for each service, and leaves nothing behind',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'millrace-demo-test-'));
      const [data, temporary] = [join(folder, 'data'), join(folder, 'temporary')];
      try {
        await mkdir(temporary);
        const command = ['run', '-s', 'demo', '--', film, '--stack', '--data', data];
        const { stdout } = await promisify(execFile)('npm', command, {
          cwd: root,
          env: { ...process.env, ENCODER_PRESET: 'ultrafast', TMPDIR: temporary },
        });
        expect(stdout).toContain('All as promised:');
        expect(await readdir(data)).toEqual(expect.arrayContaining(['kafka', 's3', 'logs']));
        const left = (await readdir(temporary)).filter((name) => name.startsWith('millrace-'));
        expect(left).toEqual([]);
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
    // The first start of Kafka and the S3 server on a machine fetches and builds them.
    20 * 60_000,
  );
});
