import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type LogFile, openLogFile } from './log-file.ts';

describe('a log file of bounded size', () => {
  let folder: string;
  let path: string;
  let log: LogFile;
  let stream: PassThrough;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-log-'));
    path = join(folder, 'logs/some.log');
    log = openLogFile(path, 100);
    stream = new PassThrough();
  });
  afterEach(async () => {
    log.close();
    await rm(folder, { recursive: true });
  });

  it('keeps the newest lines in two files, however much is written', async () => {
    const followed = log.follow(stream);
    for (let n = 1; n <= 100; n += 1) stream.write(`line number ${n}\n`);
    await followed.saw(/number 100$/);
    const [now, before] = await Promise.all([readFile(path, 'utf8'), readFile(`${path}.1`, 'utf8')]);
    expect(now.length).toBeLessThanOrEqual(100);
    expect(before.length).toBeLessThanOrEqual(100);
    expect(`${before}${now}`).toMatch(/line number 99\nline number 100\n$/);
    expect((await stat(path)).mode & 0o077).toBe(0);
  });

  it('goes on with the file of the last run, within the same bound', async () => {
    stream.write(`${'x'.repeat(90)}\n`);
    await log.follow(stream).saw(/x/);
    log.close();
    log = openLogFile(path, 100);
    const next = new PassThrough();
    next.write('after the restart\n');
    await log.follow(next).saw(/restart/);
    expect(await readFile(path, 'utf8')).toBe('after the restart\n');
    expect(await readFile(`${path}.1`, 'utf8')).toContain('xxx');
  });

  it("tells a stream's last lines, also when they come in pieces", async () => {
    const followed = log.follow(stream);
    stream.write('one\ntw');
    stream.write('o\nthree\n');
    await followed.saw(/three/);
    expect(followed.lines).toEqual(['one', 'two', 'three']);
  });
});
