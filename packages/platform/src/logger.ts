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

const secretFields = new Set([
  ...['token', 'secret', 'password', 'authorization', 'cookie', 'phone', 'signingSecret'],
]);
/** How deep fields are looked into: a line's own, theirs and theirs again. */
const maskedDepth = 3;

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

/** The PostgreSQL client adds itself to errors of idle connections, with its statements and the key to cancel them. */
function withoutClient(error: object): object {
  return Object.fromEntries(Object.entries(error).filter(([name]) => name !== 'client'));
}

/** JSON lines with time, level and service, and the ids of the current trace. Fields that hold secrets are masked, wherever they are named so. */
export function createLogger(options: LoggerOptions): Logger {
  const logger = pino(
    {
      level: options.level ?? 'info',
      base: { service: options.service },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        log: (fields) => maskFields(fields),
      },
      serializers: {
        err: (error: unknown) => maskFields(withoutClient(pino.stdSerializers.err(error as Error))),
      },
      mixin: currentTraceIds,
      hooks: { streamWrite: maskSecrets },
    },
    options.destination ?? standardOutput(),
  );
  // Children inherit what replaces it, since pino asks no formatter about their own fields.
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called with each logger as its `this`
  const { child } = logger;
  return Object.assign(logger, {
    child(this: Logger, fields: object): Logger {
      return child.call(this, maskFields(fields));
    },
  });
}

/** How long a line may wait for others, in milliseconds. */
const gatherMs = 5;

/** Lines go out together: a write for each would cost more than all else in a request. What waits at an exit goes too. */
function standardOutput(): { write(line: string): void } {
  const stream = pino.destination({ dest: 1, sync: false, minLength: 8 * 1024 });
  let due = false;
  return {
    write: (line) => {
      stream.write(line);
      if (due) return;
      due = true;
      setTimeout(() => {
        due = false;
        stream.flush();
      }, gatherMs);
    },
  };
}

/** The same fields with those masked whose names say that they hold secrets; copies only what it changes. */
function maskFields<T extends object>(fields: T, depth = maskedDepth): T {
  let masked: Record<string, unknown> | undefined;
  for (const name of Object.keys(fields)) {
    const value = (fields as Record<string, unknown>)[name];
    const shown = secretFields.has(name)
      ? '***'
      : depth > 1 && isTree(value)
        ? maskFields(value, depth - 1)
        : value;
    if (shown === value) continue;
    masked ??= (Array.isArray(fields) ? [...fields] : { ...fields }) as Record<string, unknown>;
    masked[name] = shown;
  }
  return (masked ?? fields) as T;
}

/** Errors become fields later (`err`), and bytes have none. */
const isTree = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !(value instanceof Error) && !ArrayBuffer.isView(value);

const maskSecrets = (line: string): string =>
  secretShapes.reduce((text, [shape, mask]) => text.replace(shape, mask), line);
