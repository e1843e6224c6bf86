import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import ProgressReporter from './progress-reporter.mjs';
import { supervise, type Supervised } from './supervise.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-supervise-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const runs = (script: string, idleMs = 60_000): Promise<Supervised> =>
  supervise(process.execPath, ['-e', script], { folder, idleMs, env: { NODE_OPTIONS: '' } });
const child = (options: string): string =>
  `require('child_process').spawn('sleep', ['100'], ${options}).unref();`;
/** Ended, though nobody may have asked for its exit code yet. */
const isAlive = (pid: string): boolean =>
  existsSync(`/proc/${pid}`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));

describe('a supervised run', () => {
  it.each([0, 3])('that ends well leaves nothing to say: exit code %d', async (code) => {
    expect(await runs(`process.exitCode = ${code}`)).toEqual({ code, complaints: [] });
  });

  it('has a temporary folder of its own, through which other users get', async () => {
    const script = `
      const { mode } = require('fs').statSync(process.env.TMPDIR + '/..');
      process.exitCode = require('os').tmpdir() === '${folder}/tmp' && (mode & 0o755) === 0o755 ? 0 : 1;`;
    expect((await runs(script)).code).toBe(0);
  });

  it.each([
    ['that its child left', child(`{ stdio: 'ignore' }`)],
    ['with an empty environment', child(`{ stdio: 'ignore', env: {} }`)],
    ['in a session of its own', child(`{ stdio: 'ignore', detached: true }`)],
  ])('names and ends a process %s', async (_, script) => {
    const { code, complaints } = await runs(script);
    expect(code).toBe(0);
    expect(complaints).toEqual([expect.stringMatching(/^still runs: \d+ sleep 100$/)]);
    expect(isAlive(/\d+/.exec(complaints[0] ?? '')?.[0] ?? '')).toBe(false);
  });

  it('names a folder that was left', async () => {
    const { complaints } = await runs(`require('fs').mkdirSync(process.env.TMPDIR + '/millrace-x')`);
    expect(complaints).toEqual(['left behind: millrace-x in the temporary folder']);
  });

  it('is ended when it makes no progress, and says what hung', async () => {
    const script = `
      require('fs').writeFileSync(process.env.MILLRACE_TEST_PROGRESS, 'a.test.ts: it waits');
      setInterval(() => undefined, 1000);`;
    const { code, complaints } = await runs(script, 700);
    expect(code).toBe(1);
    expect(complaints).toEqual(['nothing has happened for 0.7 s: a.test.ts: it waits']);
  });

  it('says so when no test runs but it does not end', async () => {
    const { complaints } = await runs('setInterval(() => undefined, 1000)', 300);
    expect(complaints).toEqual([
      'nothing has happened for 0.3 s: no test runs, but something keeps it from ending',
    ]);
  });

  it('is let be as long as it makes progress', async () => {
    const script = `
      let left = 8;
      const timer = setInterval(() => {
        require('fs').writeFileSync(process.env.MILLRACE_TEST_PROGRESS, String(left));
        if (--left === 0) clearInterval(timer);
      }, 250);`;
    expect(await runs(script, 1_500)).toEqual({ code: 0, complaints: [] });
  });
});

describe('the reporter', () => {
  it('tells which tests run, and nothing when none does', () => {
    const file = path.join(folder, 'progress');
    writeFileSync(file, '');
    const before = process.env['MILLRACE_TEST_PROGRESS'];
    process.env['MILLRACE_TEST_PROGRESS'] = file;
    try {
      const reporter = new ProgressReporter();
      const told = (): string => readFileSync(file, 'utf8');
      const [a, b] = [{ path: path.resolve('a.test.ts') }, { path: path.resolve('b.test.ts') }];
      reporter.onTestFileStart(a);
      reporter.onTestFileStart(b);
      expect(told()).toBe('a.test.ts: loading\nb.test.ts: loading');
      reporter.onTestCaseStart(a, { ancestorTitles: ['it'], title: 'waits' });
      reporter.onTestFileResult(b);
      expect(told()).toBe('a.test.ts: it waits');
      reporter.onTestCaseResult(a, { fullName: 'it waits' });
      expect(told()).toBe('a.test.ts: after it waits');
      reporter.onTestFileResult(a);
      expect(told()).toBe('');
    } finally {
      if (before === undefined) delete process.env['MILLRACE_TEST_PROGRESS'];
      else process.env['MILLRACE_TEST_PROGRESS'] = before;
    }
  });
});
