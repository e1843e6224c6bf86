import { inspect } from 'node:util';

/** One thing that the demo looked at. */
interface Check {
  name: string;
  /** What was seen. */
  seen: string;
}

/** The first thing that was not as it must be. */
export class DemoFailure extends Error {
  override readonly name = 'DemoFailure';
  constructor(check: string, problem: string, options?: ErrorOptions) {
    super(`${check}: ${problem}`, options);
  }
}

export interface Report {
  /** Runs one check; what it returns is what was seen. @throws DemoFailure when it throws */
  check<T>(name: string, look: () => Promise<T>, seen?: (result: T) => string): Promise<T>;
  /** Moves the bar of a step that takes a while. `share` is 0 to 1. */
  progress(name: string, share: number): void;
  table(): string;
}

const barWidth = 30;

/** Collects checks and draws progress: a bar on a terminal, a line every tenth elsewhere. */
export function createReport(out: NodeJS.WriteStream): Report {
  const checks: Check[] = [];
  let shown = '';
  const clear = (): void => {
    if (out.isTTY && shown !== '') out.write('\r\u001b[2K');
    shown = '';
  };
  return {
    async check(name, look, seen = () => 'ok') {
      try {
        const result = await look();
        clear();
        checks.push({ name, seen: seen(result) });
        out.write(`  ✓ ${name}: ${seen(result)}\n`);
        return result;
      } catch (error) {
        clear();
        throw new DemoFailure(name, error instanceof Error ? describe(error) : String(error), {
          cause: error,
        });
      }
    },
    progress(name, share) {
      const done = Math.round(Math.min(1, Math.max(0, share)) * barWidth);
      const bar = `  ${name} [${'█'.repeat(done)}${'░'.repeat(barWidth - done)}] ${Math.round(share * 100)} %`;
      const step = `${name}${Math.floor(share * 10)}`;
      if (out.isTTY) out.write(`\r\u001b[2K${bar}`);
      else if (step !== shown) out.write(`${bar}\n`);
      shown = step;
    },
    table() {
      const width = Math.max(...checks.map((check) => check.name.length));
      return checks.map((check) => `  ${check.name.padEnd(width)}  ${check.seen}`).join('\n');
    },
  };
}

const describe = (error: Error): string =>
  error.cause instanceof Error ? `${error.message} (${describe(error.cause)})` : error.message;

/** @throws Error with what was expected and what was seen */
export function expectEqual(what: string, seen: unknown, expected: unknown): void {
  const [a, b] = [inspect(seen), inspect(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, expected ${b}`);
}
