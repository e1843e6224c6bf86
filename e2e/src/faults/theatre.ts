import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Bus } from '@millrace/bus';
import { createKafkaBus } from '@millrace/bus/kafka';
import { type ObjectStore } from '@millrace/objects';
import { createS3ObjectStore } from '@millrace/objects/s3';
import { silentLogger, systemClock } from '@millrace/platform';
import { createDatabase, type Database } from '@millrace/store';
import { type RunningStack, startStack } from '../../../dev/stack/stack.ts';
import { attachStack, type Stack } from '../demo/stack.ts';
import { type Outage } from './faults.ts';
import { openPhaseLog, type PhaseLog } from './phase-log.ts';
import { missingForMounts, mountSmallScratch, type SmallScratch } from './small-scratch.ts';

/** Millrace as on a cluster, each service saying what it goes through, and what a test looks at it with. */
export interface Theatre {
  stack: RunningStack;
  /** The same, as a customer and an operator know it. */
  service: Stack;
  phases: PhaseLog;
  db: Database;
  objects: ObjectStore;
  bus: Bus;
  /** Of the first encoder; null where nothing can be mounted. */
  scratch: SmallScratch | null;
  /** Where the S3 server keeps the bucket. */
  bucketFolder: string;
  /** Processes of services that got a SIGKILL, other than by an order of the phase log. */
  killed: Set<number>;
  /** When a server was away. */
  outages: Outage[];
  /** Lines of a service's log. */
  readLog(name: string): string[];
  /** Stops the services, and leaves the servers running. */
  stopServices(): Promise<void>;
  /** Ends and removes everything, whatever of it fails; then throws what failed. Safe to repeat. */
  close(): Promise<void>;
}

/** A dead or sleeping encoder's work is taken up again after this. */
const leaseMs = 3_000;
const settings = {
  // So long that the permits are what makes encoders look.
  ENCODER_IDLE_MS: '3000',
  ENCODER_LEASE_MS: String(leaseMs),
  ENCODER_PRESET: 'ultrafast',
  ENCODER_THREADS: '1',
  API_RATE_PER_MINUTE: '1000000',
};
const bucket = 'millrace';

export async function openTheatre(signal: AbortSignal): Promise<Theatre> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-faults-'));
  const [dataDir, readyFile] = [join(folder, 'data'), join(folder, 'ready.json')];
  const ends = new AsyncDisposableStack();
  ends.defer(() => rm(folder, { recursive: true, force: true }));
  const opened = <T extends { close(): Promise<void> }>(part: T): T => ends.adopt(part, () => part.close());
  try {
    const phases = await openPhaseLog(join(folder, 'phases'));
    const scratch =
      missingForMounts() === null ? mountSmallScratch(join(dataDir, 'scratch/encoder-1')) : null;
    if (scratch !== null) ends.defer(() => scratch.unmount());
    const stack = await startStack({
      ...{ dataDir, readyFile, signal, encoders: 2, logger: silentLogger, say: () => undefined },
      env: { ...process.env, NODE_ENV: undefined, ...settings, ...phases.env },
    });
    ends.defer(() => stack.stop());
    const { kafka, postgres, s3 } = stack.servers;
    const { endpoint, region, credentials } = s3;
    const place = { endpoint, region, credentials, bucket, pathStyle: true };
    return {
      ...{ stack, phases, scratch, bucketFolder: join(dataDir, 's3/buckets', bucket) },
      ...{ killed: new Set(), outages: [], close: () => ends.disposeAsync() },
      readLog: (name) => {
        const path = join(dataDir, 'logs', `${name}.log`);
        return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
      },
      service: await attachStack(readyFile, dataDir, signal),
      db: opened(createDatabase({ connectionString: postgres.connectionString, logger: silentLogger })),
      objects: opened(createS3ObjectStore({ ...place, logger: silentLogger, clock: systemClock })),
      bus: opened(
        createKafkaBus({
          connection: { brokers: [kafka.address], clientId: 'test' },
          logger: silentLogger,
        }),
      ),
      stopServices: async () => {
        await Promise.all([...stack.services.values()].map((process) => process.stop()));
      },
    };
  } catch (error) {
    await ends.disposeAsync();
    throw error;
  }
}
