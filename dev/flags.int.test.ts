import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';

const root = fileURLToPath(new URL('../', import.meta.url));
const run = (entry: string, ...args: string[]): { status: number | null; stdout: string; stderr: string } => {
  // Jest's own options would add a warning to what is said.
  const env = { ...process.env, NODE_OPTIONS: undefined };
  return spawnSync(process.execPath, [entry, ...args], { cwd: root, encoding: 'utf8', env });
};

describe.each([
  ['scripts/test.ts', 'usage: npm test [-- PATTERN…] [--checks]'],
  ['bench/src/objects.ts', 'usage: npm run objects --workspace bench -- [--rounds 5]'],
  ['load-tests/node/main.ts', 'usage: npm run load:customer -- [--ready-file /tmp/millrace.json]'],
])('the command %s', (entry, usage) => {
  it('does nothing but say its usage when it is asked for it', () => {
    expect(run(entry, '--help')).toMatchObject({
      ...{ status: 0, stderr: '' },
      stdout: expect.stringMatching(/^usage: [^\n]+\n$/) as unknown,
    });
    expect(run(entry, '--help').stdout).toContain(usage);
  });

  it('does nothing but name a flag that it does not know, and say its usage', () => {
    const { status, stdout, stderr } = run(entry, '--testNamePattern', 'x');
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toContain("Unknown option '--testNamePattern'");
    expect(stderr).toContain(usage);
  });
});
