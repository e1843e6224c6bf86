import { pino } from 'pino';
import { currentTraceIds } from './trace.ts';

/** Structured logging: fields first, then a short constant message. Never a token, secret or phone number. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Logger;
}

/** Discards everything; for tests that do not look at logs. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};

export const logLevels = ['debug', 'info', 'warn', 'error'] as const;

export interface LoggerOptions {
  service: string;
  level?: (typeof logLevels)[number];
  /** Takes one JSON line at a time; standard output unless told. */
  destination?: { write(line: string): void };
}

const secretFields = ['token', 'secret', 'password', 'authorization', 'cookie', 'phone', 'signingSecret'];

/** Last defence against secrets inside messages of libraries and errors: what they look like is masked. */
const secretShapes: readonly [RegExp, string][] = [
  [/(token=)[^"&\s\\]+/gi, '$1***'],
  // Of part URLs: whoever has one may put that part.
  [/(signature=)[^"&\s\\]+/gi, '$1***'],
  [/(svk_[A-Za-z0-9]+_)[A-Za-z0-9]+/g, '$1***'],
  [/(whsec_|ses_)[A-Za-z0-9_-]{16,}/g, '$1***'],
  [/(Bearer )[^"\s\\]+/gi, '$1***'],
  // Upload and playback tokens, and JWTs: base64url of JSON, and what signs it.
  [/(eyJ)[\w-]{16,}\.[\w.-]+/g, '$1***'],
  [/(:\/\/[^/@:"\s]*:)[^@/"\s]+@/g, '$1***@'],
];

/** JSON lines with time, level and service, and the ids of the current trace. Fields that hold secrets are masked, wherever they are named so. */
export function createLogger(options: LoggerOptions): Logger {
  const paths = secretFields.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);
  return pino(
    {
      level: options.level ?? 'info',
      base: { service: options.service },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      mixin: currentTraceIds,
      redact: { paths, censor: '***' },
      hooks: { streamWrite: maskSecrets },
    },
    options.destination ?? pino.destination({ dest: 1, sync: false }),
  );
}

const maskSecrets = (line: string): string =>
  secretShapes.reduce((text, [shape, mask]) => text.replace(shape, mask), line);
