import { type Logger } from './logger.ts';
import { type Service } from './service.ts';

/** How long a graceful stop may take, in milliseconds; what is left then is abandoned. */
const stopTimeoutMs = 30_000;

/**
 * Starts services in order and stops them in reverse: the first is the ground of the others. When one cannot
 * start, those before it are stopped and its error is thrown.
 */
export async function startServices(
  services: readonly Service[],
  options: { signal: AbortSignal; logger: Logger },
): Promise<{ stop(): Promise<void> }> {
  const started: Service[] = [];
  const stop = async (): Promise<void> => {
    for (const service of started.splice(0).reverse()) {
      await service.stop().catch((error: unknown) => {
        options.logger.error({ err: error, name: service.name }, 'service did not stop cleanly');
      });
    }
  };
  for (const service of services) {
    try {
      // Counted before it is up: a start that failed half-way has something to close too.
      started.push(service);
      await service.start(options.signal);
      options.signal.throwIfAborted();
      options.logger.info({ name: service.name }, 'service started');
    } catch (error) {
      await stop();
      throw error;
    }
  }
  return { stop };
}

/**
 * Runs services until SIGINT or SIGTERM, for main files: `process.exitCode = await runServices(…)`. Resolves
 * with the exit code: 0 after a clean stop, 1 when the start failed or the stop took too long.
 */
export async function runServices(services: readonly Service[], logger: Logger): Promise<number> {
  const asked = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    logger.info({ signal }, 'stopping');
    asked.abort(new Error(`got ${signal}`));
  };
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  try {
    const started = await startServices(services, { signal: asked.signal, logger });
    if (!asked.signal.aborted) {
      await new Promise((resolve) => asked.signal.addEventListener('abort', resolve, { once: true }));
    }
    await within(stopTimeoutMs, started.stop());
    return 0;
  } catch (error) {
    if (asked.signal.aborted && error === asked.signal.reason) return 0;
    logger.error({ err: error }, 'could not run');
    return 1;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`stopping took longer than ${ms} ms`));
    }, ms);
  });
  await Promise.race([work, late]).finally(() => clearTimeout(timer));
}
