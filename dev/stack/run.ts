import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { OperatorsProblemError, sentenceFor, stopOnSignals } from '@millrace/embedded/stack-parts';
import { createLogger, type Logger } from '@millrace/platform';
import { missingForKafka } from '../kafka/jars.ts';
import { missingForS3 } from '../s3/versitygw.ts';
import { type RunningStack, startStack } from './stack.ts';

const usage = 'usage: npm run stack [-- [--encoders N] [--data DIR] [--ready-file FILE]]';
const defaultData = fileURLToPath(new URL('../../.millrace/stack', import.meta.url));
const mostEncoders = 16;

/**
 * Runs the stack until SIGINT or SIGTERM; a second signal ends it at once.
 * @returns the exit code: 0 after a clean stop, 1 when it cannot run, 2 for wrong usage
 */
export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const flags = readFlags(args);
  if (flags === null) {
    process.stderr.write(`${usage}\n`);
    return 2;
  }
  const stopping = stopOnSignals();
  const say = (line: string): boolean => process.stdout.write(`${line}\n`);
  const logger = createLogger({ service: 'stack', level: 'warn', destination: process.stderr });
  try {
    const missing = [missingForKafka(), missingForS3()].filter((what) => what !== null);
    if (missing.length > 0) throw new OperatorsProblemError(`missing here: ${missing.join('; ')}`);
    const stack = await startStack({ ...flags, env, logger, say, signal: stopping });
    say(describe(stack));
    await untilAborted(stopping);
    say('stopping');
    await stack.stop();
    return 0;
  } catch (error) {
    if (stopping.aborted) return 0;
    report(error, logger);
    return 1;
  }
}

interface RunFlags {
  dataDir: string;
  encoders: number;
  readyFile?: string;
}

function readFlags(args: readonly string[]): RunFlags | null {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { data: { type: 'string' }, 'ready-file': { type: 'string' }, encoders: { type: 'string' } },
    });
    const encoders = Number(values.encoders ?? 1);
    if (!Number.isInteger(encoders) || encoders < 1 || encoders > mostEncoders) return null;
    const readyFile = values['ready-file'];
    return {
      ...{ dataDir: resolve(values.data ?? defaultData), encoders },
      ...(readyFile === undefined ? {} : { readyFile: resolve(readyFile) }),
    };
  } catch {
    return null;
  }
}

function describe(stack: RunningStack): string {
  const ready = stack.ready();
  const addresses: Record<string, string> = {
    postgres: new URL(stack.servers.postgres.connectionString).host,
    kafka: ready.kafka,
    s3: ready.s3,
    api: `${ready.api}, internal ${ready.admin}`,
    cdn: ready.cdn,
  };
  const lines = Object.entries(ready.pids).map(([name, pid]) => {
    const ops = ready.ops[name];
    const where = [addresses[name], ops === undefined ? undefined : `operations ${ops}`];
    return `  ${name.padEnd(12)} pid ${String(pid).padEnd(8)} ${where.filter((text) => text !== undefined).join(', ')}`;
  });
  return `the stack is ready, until Ctrl-C:\n${lines.join('\n')}\n  ${'dns'.padEnd(25)} ${ready.dns}`;
}

function report(error: unknown, logger: Logger): void {
  const sentence = sentenceFor(error);
  if (sentence === null) logger.error({ err: error }, 'could not run');
  else process.stderr.write(`millrace: ${sentence}\n`);
}

/** The children keep this process alive meanwhile. */
const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((done) => {
    if (signal.aborted) done();
    signal.addEventListener('abort', () => done(), { once: true });
  });
