import { type EmbeddedPostgres, startPostgres } from '@millrace/embedded/stack-parts';
import { type Logger } from '@millrace/platform';
import { join } from 'node:path';
import { type KafkaBroker, startKafkaBroker } from '../kafka/broker.ts';
import { type S3Server, startS3Server } from '../s3/server.ts';

/** A server that the services stand on. */
interface StackServer {
  readonly name: string;
  /** Undefined while it does not run. */
  readonly pid: number | undefined;
  /** Ends it as a power cut would; it stays away until `start`. */
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface StackServers {
  kafka: StackServer & { address: string };
  s3: StackServer & Pick<S3Server, 'endpoint' | 'region' | 'credentials'>;
  postgres: StackServer & { connectionString: string };
}

interface ServerOptions {
  dataDir: string;
  ports: { kafka: number; s3: number; postgres: number };
  logger: Logger;
}

/** Starts all three at once, with their data below the folder; none runs when one cannot be started. */
export async function startServers({ dataDir, ports, logger }: ServerOptions): Promise<StackServers> {
  const [kafka, s3, postgres] = await Promise.allSettled([
    startKafkaBroker({ dataDir: join(dataDir, 'kafka'), port: ports.kafka, detached: true }),
    startS3Server({ dataDir: join(dataDir, 's3'), port: ports.s3, detached: true }),
    startRecord({ dataDir, port: ports.postgres, logger }),
  ]);
  const started = [kafka, s3, postgres].flatMap((start) =>
    start.status === 'fulfilled' ? [start.value] : [],
  );
  try {
    return {
      kafka: named('kafka', valueOf(kafka)),
      s3: named('s3', valueOf(s3)),
      postgres: valueOf(postgres),
    };
  } catch (error) {
    await Promise.all(started.map((server) => server.stop()));
    throw error;
  }
}

function valueOf<T>(settled: PromiseSettledResult<T>): T {
  if (settled.status === 'rejected') throw settled.reason;
  return settled.value;
}

/** Adds a name, and keeps what is read anew each time. */
const named = <Server extends KafkaBroker | S3Server, Name extends string>(
  name: Name,
  server: Server,
): Server & { name: Name } =>
  Object.defineProperties({ name }, Object.getOwnPropertyDescriptors(server)) as Server & { name: Name };

async function startRecord(options: {
  dataDir: string;
  port: number;
  logger: Logger;
}): Promise<StackServers['postgres']> {
  let running: EmbeddedPostgres | undefined = await startPostgres(options);
  const { connectionString } = running;
  const end = async (signal?: NodeJS.Signals): Promise<void> => {
    const ending = running;
    running = undefined;
    if (ending === undefined) return;
    if (signal !== undefined) {
      process.kill(ending.pid, signal);
      await ending.exited;
    }
    await ending.stop();
  };
  return {
    ...{ name: 'postgres', connectionString },
    get pid() {
      return running?.pid;
    },
    kill: () => end('SIGKILL'),
    start: async () => {
      running ??= await startPostgres(options);
    },
    stop: () => end(),
  };
}
