import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { firstClosedPath } from './access.ts';

describe('the first closed path', () => {
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  const stranger = { uid: uid + 1, gid: gid + 1 };
  let root: string;
  let program: string;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'millrace-access-'));
    program = join(root, 'a/b/program');
    await mkdir(join(root, 'a/b'), { recursive: true });
    await writeFile(program, '');
    for (const folder of [root, join(root, 'a'), join(root, 'a/b')]) await chmod(folder, 0o711);
  });
  afterAll(() => rm(root, { recursive: true }));

  it.each([
    ['a folder in between that is closed to others', { uid: uid + 1, gid: gid + 1 }, 0o700, true],
    ['one that is open to the group alone, for a member', { uid: uid + 1, gid }, 0o710, false],
    ['one that is open to the group alone, for a stranger', { uid: uid + 1, gid: gid + 1 }, 0o710, true],
    ['one that is open to others but not to its own group, for a member', { uid: uid + 1, gid }, 0o701, true],
    ['one that is open to its owner alone, for the owner', { uid, gid }, 0o700, false],
  ])('is decided by who asks: %s', async (_what, user, mode, closed) => {
    await chmod(join(root, 'a'), mode);
    expect(firstClosedPath([program], user, 'enter')).toBe(closed ? join(root, 'a') : undefined);
    await chmod(join(root, 'a'), 0o711);
  });

  it('is the file itself when it is asked to run', async () => {
    await chmod(program, 0o700);
    expect(firstClosedPath([program], stranger, 'execute')).toBe(program);
    expect(firstClosedPath([program], stranger, 'enter')).toBeUndefined();
    await chmod(program, 0o755);
    expect(firstClosedPath([program], stranger, 'execute')).toBeUndefined();
  });
});
