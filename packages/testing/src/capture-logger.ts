import { type Logger } from '@millrace/platform';

export interface LogLine {
  level: 'debug' | 'info' | 'warn' | 'error';
  message: string;
  /** The line's own fields over those of its child loggers. */
  fields: Record<string, unknown>;
}

export interface CapturedLog {
  logger: Logger;
  readonly lines: readonly LogLine[];
  /** Everything logged so far as one text, errors with their stacks: to look for secrets in. */
  text(): string;
}

/** A logger that keeps its lines for the test to look at. */
export function captureLogger(): CapturedLog {
  const lines: LogLine[] = [];
  const make = (base: object): Logger => {
    const at =
      (level: LogLine['level']) =>
      (fields: object, message: string): void => {
        lines.push({ level, message, fields: { ...base, ...fields } });
      };
    return {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: (fields) => make({ ...base, ...fields }),
    };
  };
  return { logger: make({}), lines, text: () => lines.map(render).join('\n') };
}

function render(line: LogLine): string {
  return JSON.stringify(line, (_key, value: unknown) => {
    if (typeof value === 'bigint') return value.toString();
    if (value instanceof Error) return { stack: value.stack, cause: value.cause, ...plain(value) };
    return value;
  });
}

/** An error's own extra fields (`code`, `detail`, …). */
function plain(error: Error): object {
  return Object.fromEntries(Object.entries(error));
}
