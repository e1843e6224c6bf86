import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { type Clone, createClone } from './testing/clone.ts';

/** Does what its first argument says, and leaves its process id and the signals that it got in files beside it. */
const entry = `
import { appendFileSync, writeFileSync } from 'node:fs';
const [what, ...rest] = process.argv.slice(2);
const file = (name: string) => new URL(name, import.meta.url);
if (what === 'show') console.log(JSON.stringify({ cwd: process.cwd(), rest }));
if (what === 'exit') process.exitCode = Number(rest[0]);
if (what === 'stay' || what === 'die') {
  if (what === 'stay') {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        appendFileSync(file('signals'), signal + '\\n');
        process.exit(5);
      });
    }
  }
  setInterval(() => undefined, 1000);
  writeFileSync(file('pid'), String(process.pid));
}
`;

describe('the entry of a command', () => {
  let clone: Clone;
  beforeEach(async () => {
    clone = await createClone(entry);
  });
  afterEach(() => clone.remove());

  const read = (name: string): string => {
    const path = join(clone.root, 'embedded/src', name);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  };
  const running = async (): Promise<number> =>
    Number(await waitFor(() => read('pid'), { what: 'the entry' }));
  const gone = (pid: number): boolean => !existsSync(`/proc/${pid}`) || isZombie(pid);
  const isZombie = (pid: number): boolean => / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));

  it('gets the arguments as they are, in the folder where npm was called', async () => {
    const env = { npm_lifecycle_event: 'start', INIT_CWD: clone.bin };
    const { code, out } = await clone.run(['start', 'show', '--data', 'a b', ''], env).ended;
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({ cwd: realpathSync(clone.bin), rest: ['--data', 'a b', ''] });
  });

  it.each([0, 1, 2, 7])('ends the command with its exit code %i', async (code) => {
    expect(await clone.run(['start', 'exit', String(code)]).ended).toMatchObject({ code, signal: null });
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('gets %s, and decides itself how it ends', async (signal) => {
    const { child, ended } = clone.run(['start', 'stay']);
    await running();
    child.kill(signal);
    expect(await ended).toMatchObject({ code: 5 });
    expect(read('signals')).toBe(`${signal}\n`);
  });

  it('ends the command by the signal that ended it', async () => {
    const { child, ended } = clone.run(['start', 'die']);
    await running();
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: null, signal: 'SIGTERM' });
  });

  it('ends the command with 137 when it is killed', async () => {
    const { ended } = clone.run(['start', 'die']);
    process.kill(await running(), 'SIGKILL');
    expect(await ended).toMatchObject({ code: 137 });
  });

  it('is told to stop when the command above it is killed', async () => {
    const { child } = clone.run(['start', 'stay']);
    const pid = await running();
    child.kill('SIGKILL');
    await waitFor(() => gone(pid), { what: 'the entry to end' });
    expect(read('signals')).toBe('SIGTERM\n');
  });

  it.each([
    ['SIGINT', 'SIGINT'],
    ['SIGTERM', 'SIGTERM'],
    ['SIGKILL', 'SIGTERM'],
  ] as const)('learns of a %s that npm alone gets, as %s', async (sent, seen) => {
    const { child } = clone.npm('start', '--', 'stay');
    const pid = await running();
    child.kill(sent);
    await waitFor(() => gone(pid), { what: 'the entry to end' });
    expect(read('signals')).toBe(`${seen}\n`);
  });
});
