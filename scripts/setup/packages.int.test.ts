import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { type Clone, createClone } from './testing/clone.ts';

const ok = { code: 0, signal: null, out: 'entry\n' };

describe('the packages of a clone', () => {
  let clone: Clone;
  beforeEach(async () => {
    clone = await createClone("process.stdout.write('entry\\n');");
  });
  afterEach(() => clone.remove());

  const start = (env?: NodeJS.ProcessEnv) => clone.run(['start'], env);
  const inClone = (path: string): string => join(clone.root, path);

  it('are installed once, with nothing but the entry on standard output', async () => {
    const first = await start().ended;
    expect(first).toMatchObject(ok);
    expect(first.err).toMatch(/installing the packages[^]*packages installed in \d+ s/);
    const second = await start().ended;
    expect(second).toEqual({ ...ok, err: '' });
    expect(clone.npmCalls()).toEqual([expect.stringMatching(/^ci .*--include=dev/)]);
  });

  it('are installed by the real npm just so', async () => {
    rmSync(join(clone.bin, 'npm'));
    expect(await start().ended).toMatchObject(ok);
    expect(await start().ended).toEqual({ ...ok, err: '' });
  });

  it('are installed again when the lock file changes', async () => {
    await start().ended;
    const lock = JSON.parse(readFileSync(inClone('package-lock.json'), 'utf8')) as {
      packages: Record<string, { version?: string }>;
    };
    const vendored = lock.packages['vendor/node'];
    if (vendored) vendored.version = '24.0.1';
    lock.packages['node_modules/more'] = { version: '1.0.0' };
    writeFileSync(inClone('package-lock.json'), JSON.stringify(lock));
    expect(await start().ended).toMatchObject(ok);
    expect(clone.npmCalls()).toHaveLength(2);
  });

  it("are not installed again after the developer's own npm install", async () => {
    await start().ended;
    rmSync(inClone('node_modules/.millrace-installed'));
    expect(await start().ended).toEqual({ ...ok, err: '' });
    expect(clone.npmCalls()).toHaveLength(1);
  });

  it('are installed whole after an interruption', async () => {
    const go = join(clone.bin, 'go');
    const cut = start({ WAIT_FOR: go });
    await waitFor(() => existsSync(`${go}.started`), { what: 'npm to start' });
    cut.child.kill('SIGTERM');
    expect(await cut.ended).toMatchObject({ signal: 'SIGTERM' });
    expect(existsSync(inClone('node_modules/node'))).toBe(true);
    expect(await start().ended).toMatchObject(ok);
    expect(clone.npmCalls()).toHaveLength(2);
  });

  it('are installed once by two that start at the same time', async () => {
    const go = join(clone.bin, 'go');
    const first = start({ WAIT_FOR: go });
    await waitFor(() => existsSync(`${go}.started`), { what: 'npm to start' });
    const second = start();
    let said = '';
    second.child.stderr?.on('data', (text: string) => (said += text));
    await waitFor(() => said.includes('waiting for another set-up'));
    writeFileSync(go, '');
    expect(await first.ended).toMatchObject(ok);
    expect(await second.ended).toMatchObject(ok);
    expect(clone.npmCalls()).toHaveLength(1);
  });

  it('are left to the npm that outlived its killed parent', async () => {
    const go = join(clone.bin, 'go');
    const killed = start({ WAIT_FOR: go });
    await waitFor(() => existsSync(`${go}.started`), { what: 'npm to start' });
    killed.child.kill('SIGKILL');
    await once(killed.child, 'exit');
    const next = start();
    let said = '';
    next.child.stderr?.on('data', (text: string) => (said += text));
    await waitFor(() => said.includes('waiting for another set-up'));
    writeFileSync(go, '');
    expect(await next.ended).toMatchObject(ok);
    expect(clone.npmCalls()).toHaveLength(1);
  });

  it('take over from a set-up of which nothing is left', async () => {
    await start().ended;
    rmSync(inClone('node_modules'), { recursive: true });
    const dead = Number(execFileSync('sh', ['-c', 'echo $$'], { encoding: 'utf8' }));
    writeFileSync(inClone('.cache/setup.lock'), `${dead}\n`);
    expect(await start().ended).toMatchObject(ok);
    expect(existsSync(inClone('.cache/setup.lock'))).toBe(false);
  });

  it.each([
    ['npm fails', { NPM_FAILS: '1' }, /the registry is down[^]*run the command again/],
    ['npm is too old', { NPM_VERSION: '10.9.0' }, /npm 11 or later is needed, found 10\.9\.0/],
  ])('say what is wrong when %s, and the next run starts over', async (_what, env, message) => {
    const failed = await start(env).ended;
    expect(failed).toMatchObject({ code: 1, out: '' });
    expect(failed.err).toMatch(message);
    expect(await start().ended).toMatchObject(ok);
  });

  it('are not looked at for a command that does not exist', async () => {
    const refused = await clone.run(['bogus']).ended;
    expect(refused).toMatchObject({ code: 2, out: '' });
    expect(refused.err).toContain('usage');
    expect(clone.npmCalls()).toEqual([]);
  });
});
