import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@millrace/platform';
import { missingForKafka } from '../../../dev/kafka/jars.ts';
import { missingForS3 } from '../../../dev/s3/versitygw.ts';
import { type RunningStack, startStack } from '../../../dev/stack/stack.ts';
import { type Customer, signUp } from '../../../e2e/src/demo/customer.ts';
import { attachStack, type Stack } from '../../../e2e/src/demo/stack.ts';

/** Millrace as on a cluster, with data of its own that are removed in the end. */
export interface BenchStack {
  running: RunningStack;
  /** The same, as a customer and an operator know it. */
  service: Stack;
  /** Who uses it, signed up at the first call. */
  customer(): Promise<BenchCustomer>;
  /** Videos of that customer that play. */
  clips: string[];
  connectionString: string;
  /** Where each process's log is, by its name. */
  logOf(name: string): string;
  close(): Promise<void>;
}

export interface BenchCustomer extends Customer {
  /** The value of an API key. */
  key: string;
}

/** No limit of a minute stops what comes from one address; a clip is encoded fast, since encoding is not looked at. */
const settings = { API_RATE_PER_MINUTE: '100000000', ENCODER_PRESET: 'ultrafast' };

/** @throws Error that names what this machine lacks */
export async function openBenchStack(signal: AbortSignal, env: NodeJS.ProcessEnv = {}): Promise<BenchStack> {
  const missing = [missingForKafka(), missingForS3()].filter((what) => what !== null);
  if (missing.length > 0) throw new Error(`missing here: ${missing.join('; ')}`);
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-stack-'));
  const [dataDir, readyFile] = [join(folder, 'data'), join(folder, 'ready.json')];
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const running = await startStack({
      ...{ dataDir, readyFile, signal, logger: silentLogger, say: () => undefined },
      env: { ...process.env, NODE_ENV: undefined, ...settings, ...env },
    });
    const service = await attachStack(readyFile, dataDir, signal);
    let customer: Promise<BenchCustomer> | undefined;
    return {
      ...{ running, service, clips: [] },
      customer: () => (customer ??= signUpWithKey(service, signal)),
      connectionString: running.servers.postgres.connectionString,
      logOf: (name) => join(dataDir, 'logs', `${name}.log`),
      close: async () => {
        await running.stop();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function signUpWithKey(service: Stack, signal: AbortSignal): Promise<BenchCustomer> {
  const customer = await signUp(service, 'agency', signal);
  const key = await service.millrace('key', 'create', '--project', customer.projectId);
  return { ...customer, key: (key as { value: string }).value };
}
