import { z } from 'zod';
import { logLevels } from './logger.ts';

/** What every process of its own has settings for. */
export const processSettings = {
  LOG_LEVEL: z.enum(logLevels).default('info'),
  /** Address and port of `/health`, `/ready` and `/metrics`; must not be reachable from outside. 0 takes a free port. */
  OPS_HOST: z.string().default('127.0.0.1'),
  OPS_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  /** How long a graceful stop may take in all, in milliseconds; what is left then is abandoned. */
  SHUTDOWN_TIMEOUT_MS: z.coerce.number().int().min(1_000).default(30_000),
  /** Where traces go; without it and an endpoint nothing is traced. `otlp`, `console` or `none`. */
  OTEL_TRACES_EXPORTER: z.string().optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.string().optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z.string().optional(),
  OTEL_SDK_DISABLED: z.enum(['true', 'false']).default('false'),
  /** Name of this service in traces; `millrace-<service>` unless told. */
  OTEL_SERVICE_NAME: z.string().optional(),
};

export type ProcessConfig = z.output<z.ZodObject<typeof processSettings>>;

/** Whether traces are wanted: an exporter or where to send is named. */
export const wantsTraces = (config: ProcessConfig): boolean =>
  config.OTEL_SDK_DISABLED === 'false' &&
  config.OTEL_TRACES_EXPORTER !== 'none' &&
  [
    config.OTEL_TRACES_EXPORTER,
    config.OTEL_EXPORTER_OTLP_ENDPOINT,
    config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
  ].some((value) => value !== undefined);
