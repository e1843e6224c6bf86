import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockHeldError, takeLock } from './process-lock.ts';

const holderEntry = new URL('../testing/hold-lock.ts', import.meta.url).pathname;

describe('the lock of a data folder', () => {
  let folder: string;
  let path: string;
  let children: ChildProcess[];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-lock-'));
    path = join(folder, 'lock');
    children = [];
  });
  afterEach(async () => {
    await Promise.all(children.map(kill));
    await rm(folder, { recursive: true });
  });

  async function kill(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  async function tryElsewhere(): Promise<{ child: ChildProcess; outcome: string }> {
    const child = spawn(process.execPath, [holderEntry, path], { stdio: ['pipe', 'pipe', 'inherit'] });
    children.push(child);
    const [outcome] = (await once(createInterface(child.stdout), 'line')) as [string];
    return { child, outcome };
  }
  const stored = async (): Promise<Record<string, unknown>> =>
    JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;

  it('is held by one, also within a process, until that one releases it', () => {
    const lock = takeLock(path, 'command');
    expect(() => takeLock(path, 'service')).toThrow(LockHeldError);
    lock.release();
    takeLock(path, 'service').release();
  });

  it('names its holder', async () => {
    const { child, outcome } = await tryElsewhere();
    expect(outcome).toBe('taken');
    const refused = await new Promise(() => takeLock(path, 'service')).catch((error: unknown) => error);
    expect(refused).toMatchObject({ holder: { pid: child.pid, role: 'service' } });
  });

  it('is taken over from a holder that was killed', async () => {
    const { child } = await tryElsewhere();
    await kill(child);
    takeLock(path, 'service').release();
  });

  it('is taken over when the process id belongs to another process since', async () => {
    takeLock(path, 'service');
    await writeFile(path, JSON.stringify({ ...(await stored()), startedAt: 'an earlier boot:1' }));
    takeLock(path, 'service').release();
  });

  it.each(['', 'not json', '{"pid":1}'])('is taken over when its file is damaged: %j', async (text) => {
    await writeFile(path, text);
    takeLock(path, 'service').release();
  });

  it('stays with who took it over, though the one before releases it late', async () => {
    const late = takeLock(path, 'service');
    await writeFile(path, JSON.stringify({ ...(await stored()), startedAt: 'an earlier boot:1' }));
    takeLock(path, 'service');
    late.release();
    expect(() => takeLock(path, 'service')).toThrow(LockHeldError);
  });

  it('goes to exactly one of many that find a dead holder at once', async () => {
    const { child } = await tryElsewhere();
    await kill(child);
    const outcomes = await Promise.all(Array.from({ length: 6 }, () => tryElsewhere()));
    expect(outcomes.filter(({ outcome }) => outcome === 'taken')).toHaveLength(1);
    expect(await readdir(folder)).toEqual(['lock']);
  });
});
