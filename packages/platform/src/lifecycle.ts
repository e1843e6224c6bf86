import { type Logger } from './logger.ts';
import { type Service } from './service.ts';

/** How long a graceful stop may take unless told, in milliseconds; what is left then is abandoned. */
const defaultStopTimeoutMs = 30_000;

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
 * Runs services until SIGINT or SIGTERM. Resolves with the exit code: 0 after a clean stop, 1 when the start failed
 * or the stop took too long.
 * @param options.onStopping called at the signal, before anything stops
 */
export async function runServices(
  services: readonly Service[],
  logger: Logger,
  options: { stopTimeoutMs?: number; onStopping?: () => void } = {},
): Promise<number> {
  const { stopTimeoutMs = defaultStopTimeoutMs, onStopping } = options;
  const asked = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    logger.info({ signal }, 'stopping');
    onStopping?.();
    asked.abort(new Error(`got ${signal}`));
  };
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  const untilAsked = new Promise((resolve) => {
    asked.signal.addEventListener('abort', resolve, { once: true });
  });
  try {
    const starting = startServices(services, { signal: asked.signal, logger });
    // One that is asked to stop while it starts has no longer for that than for stopping.
    await Promise.race([starting, untilAsked]);
    const started = await (asked.signal.aborted ? within(stopTimeoutMs, starting) : starting);
    await untilAsked;
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

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`stopping took longer than ${ms} ms`));
    }, ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
