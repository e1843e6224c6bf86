import { type Clock, systemClock } from './clock.ts';
import { ConfigError, maskConfig } from './config.ts';
import { runServices } from './lifecycle.ts';
import { createLogger, type Logger } from './logger.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { createOpsServer } from './ops-server.ts';
import { type ProcessConfig } from './process-settings.ts';
import { type Service } from './service.ts';
import { startTraces } from './trace-settings.ts';

/** What a service of its own process is made with. */
export interface ProcessParts {
  /** Of the service. */
  name: string;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** Keeps a pool or client open until the service has stopped; the last one opened closes first. */
  own<T extends { close(): Promise<void> }>(part: T): T;
}

/** The configuration cannot be used: starting again changes nothing (`EX_CONFIG` of sysexits.h). */
const configExitCode = 78;
/** How long something that was forgotten may keep an ended process alive, in milliseconds. */
const lingerMs = 2_000;

/**
 * Runs one service as a process of its own until SIGINT or SIGTERM, for main files:
 * `process.exitCode = await runService(…)`. Its operations server listens first and closes last. A stop goes in order:
 * the service says that it is not ready and drains, then its connections close, then what is traced is sent.
 *
 * @param options.read reads the settings; a bad one stops the start with every problem listed
 * @returns the exit code: 0 after a clean stop, 1 when it could not start or stop in time, 78 for bad settings
 */
export async function runService<Config extends ProcessConfig>(options: {
  name: string;
  read: () => Config;
  create: (config: Config, parts: ProcessParts) => Service;
  /** Ends the process; `process.exit` unless told. */
  exit?: () => void;
}): Promise<number> {
  const { name, read, create, exit = () => process.exit() } = options;
  const config = configOrNull(name, read);
  if (config === null) return configExitCode;
  const logger = createLogger({ service: name, level: config.LOG_LEVEL });
  logger.info({ config: maskConfig(config) }, 'starting');
  const traces = await startTraces(name, config);

  const metrics = createMetrics({ service: name, process: true });
  const stopping = metrics.gauge(
    'millrace_stopping',
    'Whether the process was told to stop: it is not ready then, and drains for as long as it may.',
  );
  const owned: { close(): Promise<void> }[] = [];
  const own = <T extends { close(): Promise<void> }>(part: T): T => {
    owned.push(part);
    return part;
  };
  try {
    const service = create(config, { name, clock: systemClock, logger, metrics, own });
    const ops = opsService(service, { config, logger, metrics });
    const connections = closing('connections', () => closeAll(owned, logger));
    return await runServices([ops, connections, service], logger, {
      stopTimeoutMs: config.SHUTDOWN_TIMEOUT_MS,
      onStopping: () => stopping.set(1),
    });
  } catch (error) {
    logger.error({ err: error }, 'could not run');
    await closeAll(owned, logger);
    return 1;
  } finally {
    await traces.stop().catch((error: unknown) => {
      logger.warn({ err: error }, 'the last traces could not be sent');
    });
    endAfterAll(logger, exit);
  }
}

function configOrNull<Config>(name: string, read: () => Config): Config | null {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`millrace ${name}: ${error.message}\n`);
    return null;
  }
}

function opsService(
  service: Service,
  { config, logger, metrics }: { config: ProcessConfig; logger: Logger; metrics: Metrics },
): Service {
  const { OPS_HOST: host, OPS_PORT: port } = config;
  const server = createOpsServer({ service, metrics, host, port, logger });
  return {
    ...closing('operations', () => server.close()),
    start: async () => {
      const address = await server.listen();
      logger.info({ url: `http://${host}:${address.port}` }, 'operations server listens');
    },
  };
}

/** A part of the process that has something to do at the end alone. */
const closing = (name: string, stop: () => Promise<void>): Service => ({
  name,
  start: () => Promise.resolve(),
  stop,
  health: () => ({ healthy: true, ready: true, checks: {} }),
});

async function closeAll(owned: { close(): Promise<void> }[], logger: Logger): Promise<void> {
  for (const part of owned.splice(0).reverse()) {
    await part.close().catch((error: unknown) => {
      logger.error({ err: error }, 'a connection did not close cleanly');
    });
  }
}

/** Nothing is left to do: what still keeps the process alive (a stop that took too long) does not for long. */
function endAfterAll(logger: Logger, exit: () => void): void {
  setTimeout(() => {
    logger.warn({ lingerMs }, 'something kept the process alive after its end');
    exit();
  }, lingerMs).unref();
}
