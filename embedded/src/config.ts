import { logLevels, traceSettings } from '@millrace/platform';
import { z } from 'zod';

/** 0 takes a free port and keeps it in the data folder, so that addresses stay the same over restarts. */
const port = z.coerce.number().int().min(0).max(65_535).default(0);
const httpUrl = z
  .url({ protocol: /^https?$/ })
  .transform((url) => url.replace(/\/+$/, ''))
  .optional();

/** The embedded mode's own settings; each service's settings are read beside them. */
export const embeddedConfig = z.object({
  NODE_ENV: z.string().default('development'),
  LOG_LEVEL: z.enum(logLevels).default('info'),
  ...traceSettings,
  /** Address that every port is opened on. */
  MILLRACE_HOST: z.string().default('127.0.0.1'),
  API_PORT: port,
  API_INTERNAL_PORT: port,
  CDN_PORT: port,
  /** Where parts are PUT. */
  UPLOAD_PORT: port,
  /** Public addresses; unset: the loopback ports. */
  API_URL: httpUrl,
  CDN_URL: httpUrl,
  UPLOAD_URL: httpUrl,
  DOCS_URL: httpUrl,
});

export type EmbeddedConfig = z.output<typeof embeddedConfig>;
