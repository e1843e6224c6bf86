import { z } from 'zod';
import { logLevels } from './logger.ts';
import { traceSettings } from './trace-settings.ts';

/** What every process of its own has settings for. */
export const processSettings = {
  LOG_LEVEL: z.enum(logLevels).default('info'),
  /** Address and port of `/health`, `/ready` and `/metrics`; must not be reachable from outside. 0 takes a free port. */
  OPS_HOST: z.string().default('127.0.0.1'),
  OPS_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  /** How long a graceful stop may take in all, in milliseconds; what is left then is abandoned. */
  SHUTDOWN_TIMEOUT_MS: z.coerce.number().int().min(1_000).default(30_000),
  ...traceSettings,
};

export type ProcessConfig = z.output<z.ZodObject<typeof processSettings>>;
