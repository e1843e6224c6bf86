import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { createLogger, loadConfig, type Logger, startTraces } from '@millrace/platform';
import { checkSettings } from './compose/check-settings.ts';
import { type Embedded, startEmbedded } from './compose/embedded.ts';
import { embeddedConfig } from './config.ts';
import { dataFolder } from './data-folder/location.ts';
import { OperatorsProblemError } from './operators-problem.ts';
import { sentenceFor } from './sentence-for.ts';
import { stopOnSignals } from './stop-on-signals.ts';

const usage = 'usage: npm start -- [--data DIR] [--ready-file FILE] [--dev]';
const stopTimeoutMs = 30_000;

/**
 * Runs the embedded service until SIGINT or SIGTERM; a second signal ends it at once.
 * @returns the exit code: 0 after a clean stop, 1 when it cannot run, 2 for wrong usage
 */
export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const flags = readFlags(args);
  if (flags === null) {
    process.stderr.write(`${usage}\n`);
    return 2;
  }
  const stopping = stopOnSignals();
  let logger: Logger | undefined;
  let traces: { stop(): Promise<void> } | undefined;
  try {
    checkSettings(env);
    const config = loadConfig(embeddedConfig, env);
    if (flags.dev && config.NODE_ENV === 'production')
      throw new UsageError('--dev is refused with NODE_ENV=production');
    logger = createLogger({ service: 'embedded', level: config.LOG_LEVEL });
    traces = await startTraces('embedded', config);
    const embedded = await startEmbedded({ ...flags, config, env, logger, signal: stopping });
    process.stderr.write(`millrace is ready: API ${embedded.ready.api}, CDN ${embedded.ready.cdn}\n`);
    if (embedded.consoleUrl !== null) process.stderr.write(`development console: ${embedded.consoleUrl}\n`);
    return await untilStopped(embedded, stopping, logger);
  } catch (error) {
    if (stopping.aborted) return 0;
    const sentence = sentenceFor(error);
    if (sentence !== null) process.stderr.write(`millrace: ${sentence}\n`);
    else (logger ?? createLogger({ service: 'embedded' })).error({ err: error }, 'could not run');
    return error instanceof UsageError ? 2 : 1;
  } finally {
    await traces
      ?.stop()
      .catch((error: unknown) => logger?.warn({ err: error }, 'the last traces could not be sent'));
  }
}

class UsageError extends OperatorsProblemError {}

function readFlags(args: readonly string[]): { dataDir: string; dev: boolean; readyFile?: string } | null {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { data: { type: 'string' }, 'ready-file': { type: 'string' }, dev: { type: 'boolean' } },
    });
    const readyFile = values['ready-file'];
    return {
      dataDir: dataFolder(values.data),
      dev: values.dev ?? false,
      ...(readyFile === undefined ? {} : { readyFile: resolve(readyFile) }),
    };
  } catch {
    return null;
  }
}

async function untilStopped(embedded: Embedded, stopping: AbortSignal, logger: Logger): Promise<number> {
  const asked = new Promise<'asked'>((resolve) => {
    if (stopping.aborted) resolve('asked');
    stopping.addEventListener('abort', () => resolve('asked'), { once: true });
  });
  const why = await Promise.race([asked, embedded.databaseGone.then(() => 'database gone' as const)]);
  if (why !== 'asked') logger.error({}, 'the database ended by itself; stopping');
  const late = setTimeout(() => {
    logger.error({ stopTimeoutMs }, 'stopping took too long');
    process.exit(1);
  }, stopTimeoutMs);
  await embedded.stop();
  clearTimeout(late);
  return why === 'asked' ? 0 : 1;
}
