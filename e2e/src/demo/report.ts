import { inspect } from 'node:util';

/** One thing that the demo looked at. */
interface Check {
  name: string;
  /** What was seen, or what is wrong. */
  seen: string;
  ok: boolean;
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
  /** Shows that a step of unknown length goes on, after so many seconds. */
  waiting(name: string, seconds: number): void;
  /** All checks so far: name, what was seen, ok. */
  table(): string;
}

const barWidth = 30;
const markWidth = 4;
const waitingLineSeconds = 5;

/** Collects checks and draws progress: a bar on a terminal, now and then a line elsewhere. */
export function createReport(out: Pick<NodeJS.WriteStream, 'write' | 'isTTY'>): Report {
  const checks: Check[] = [];
  let shown = '';
  const clear = (): void => {
    if (out.isTTY && shown !== '') out.write('\r\u001b[2K');
    shown = '';
  };
  /** `line` is written anew when `step` changes; a terminal's bar moves always. */
  const draw = (line: string, step: string): void => {
    if (out.isTTY) out.write(`\r\u001b[2K${line}`);
    else if (step !== shown) out.write(`${line}\n`);
    shown = step;
  };
  const add = (check: Check): void => {
    clear();
    checks.push(check);
    out.write(`  ${check.ok ? '✓' : '✗'} ${check.name}: ${check.seen}\n`);
  };
  return {
    async check(name, look, seen = () => 'as it must be') {
      try {
        const result = await look();
        add({ name, seen: seen(result), ok: true });
        return result;
      } catch (error) {
        const problem = error instanceof Error ? describe(error) : String(error);
        add({ name, seen: problem, ok: false });
        throw new DemoFailure(name, problem, { cause: error });
      }
    },
    progress(name, share) {
      const done = Math.round(Math.min(1, Math.max(0, share)) * barWidth);
      const bar = '█'.repeat(done) + '░'.repeat(barWidth - done);
      draw(`  ${name} [${bar}] ${Math.round(share * 100)} %`, `${name} ${Math.floor(share * 10)}`);
    },
    waiting(name, seconds) {
      const way = 2 * (barWidth - markWidth);
      const step = Math.floor(seconds * 4) % way;
      const before = Math.min(step, way - step);
      const bar = '░'.repeat(before) + '█'.repeat(markWidth) + '░'.repeat(barWidth - markWidth - before);
      const whole = Math.floor(seconds);
      if (out.isTTY) draw(`  ${name} [${bar}] ${whole} s`, name);
      else draw(`  ${name} … ${whole} s`, `${name} ${Math.floor(seconds / waitingLineSeconds)}`);
    },
    table: () => tableOf(checks),
  };
}

function tableOf(checks: readonly Check[]): string {
  const rows = [
    ['check', 'what was seen', 'ok'],
    ...checks.map(({ name, seen, ok }) => [name, (seen.split('\n')[0] ?? '').slice(0, 100), ok ? '✓' : '✗']),
  ];
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  const lines = rows.map((row) => `  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`);
  return lines.toSpliced(1, 0, `  ${'─'.repeat((widths[0] ?? 0) + (widths[1] ?? 0) + 6)}`).join('\n');
}

const describe = (error: Error): string =>
  error.cause instanceof Error ? `${error.message} (${describe(error.cause)})` : error.message;

/** @throws Error with what was expected and what was seen */
export function expectEqual(what: string, seen: unknown, expected: unknown): void {
  const [a, b] = [inspect(seen), inspect(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, expected ${b}`);
}
