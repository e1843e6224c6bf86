import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

const entry = new URL('./main.ts', import.meta.url).pathname;

describe('the command line, with no service running', () => {
  let dataDir: string;
  beforeAll(async () => {
    dataDir = join(await mkdtemp(join(tmpdir(), 'millrace-cli-')), 'data');
  });
  afterAll(() => rm(join(dataDir, '..'), { recursive: true, force: true }));

  const millrace = (...args: string[]): Promise<{ code: number; out: string; err: string }> =>
    new Promise((resolve) => {
      execFile(process.execPath, [entry, '--data', dataDir, ...args], (error, out, err) => {
        resolve({ code: error === null ? 0 : Number(error.code), out, err });
      });
    });
  const json = async (...args: string[]): Promise<Record<string, unknown>> => {
    const { code, out, err } = await millrace(...args, '--json');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    return JSON.parse(out) as Record<string, unknown>;
  };

  let account: { id: string; planId: string };
  let user: { id: string };
  let project: string;
  beforeAll(async () => {
    const owner = ['--name', 'Acme', '--email', 'a@example.com', '--plan', 'pro'];
    const created = await json('account', 'create', ...owner);
    account = created['account'] as typeof account;
    user = created['user'] as typeof user;
    project = String((await json('project', 'create', '--account', account.id, '--name', 'Site'))['id']);
  });

  it('creates an account with its user, and projects, one JSON document each [CLI-001, CLI-004, CLI-008]', () => {
    expect(account).toMatchObject({ id: expect.stringMatching(/^acc_/) as unknown, planId: 'pro' });
    expect(user).toMatchObject({ email: 'a@example.com', role: 'owner' });
    expect(project).toMatch(/^prj_/);
  });

  it('creates keys and verified domains [CLI-009, CLI-010]', async () => {
    const key = await json('key', 'create', '--project', project, '--scope', 'playback');
    expect(key).toMatchObject({ scope: 'playback', value: expect.stringMatching(/^svk_/) as unknown });
    const add = ['domain', 'add', '--project', project, '--hostname'];
    expect(await json(...add, 'A.Example.com', '--verified')).toMatchObject({
      ...{ hostname: 'a.example.com', status: 'verified' },
    });
    expect(await json(...add, 'b.example.com')).toMatchObject({ status: 'pending' });
  });

  it('creates a session [CLI-007]', async () => {
    expect(await json('session', 'create', '--user', user.id)).toEqual({
      cookie: expect.any(String) as unknown,
    });
  });

  it('changes a plan and shows what is used of it [CLI-005, CLI-013]', async () => {
    expect(await json('account', 'plan', account.id, 'free')).toMatchObject({ planId: 'free' });
    expect(await json('usage', 'show', account.id)).toMatchObject({
      plan: { id: 'free', name: 'Free' },
      limits: { storedSeconds: 36_000, maxQuality: '720p' },
      usage: { storedSeconds: 0, watchedMinutes: 0, overageMinutes: 0 },
    });
  });

  it('pauses encoding of everything, a class or an account, and lifts that [CLI-019]', async () => {
    const pause = (...flags: string[]) => json('encoding', 'pause', ...flags);
    await pause('--reason', 'Disk is full');
    await pause('--class', 'large');
    await pause('--account', account.id);
    const row = (scope: string, subject: string | null, reason: string | null = null): unknown =>
      expect.objectContaining({ scope, subject, reason, pausedBy: 'operator' });
    const rows = [row('all', null, 'Disk is full'), row('class', 'large'), row('account', account.id)];
    expect(await json('encoding', 'pauses')).toEqual({ data: rows });
    await json('encoding', 'resume');
    expect(await json('encoding', 'resume', '--class', 'large')).toEqual({ data: rows.slice(2) });
    expect(await json('encoding', 'resume', '--account', account.id)).toEqual({ data: [] });
  });

  it('lists topics, and replays what is dead of one [CLI-015, CLI-016]', async () => {
    const { data } = (await json('topics')) as { data: { name: string }[] };
    expect(data.map((topic) => topic.name)).toContain('millrace.video.events');
    await json('dead', 'replay', 'millrace.video.events');
  });

  it('erases an account by its id and name, and not by its id alone', async () => {
    const { account: other } = await json('account', 'create', '--name', 'Gone', '--email', 'g@example.com');
    const { id } = other as { id: string };
    expect(await millrace('account', 'erase', id, '--name', 'Acme', '--json')).toMatchObject({
      code: 1,
      out: '',
    });
    expect((await millrace('account', 'erase', id, '--json')).code).toBe(2);
    expect(await json('account', 'erase', id, '--name', 'Gone')).toMatchObject({
      ...{ accountId: id, erasedAt: expect.any(String) as unknown, doneAt: null },
    });
  });

  it('says of the record that it was restored, and allows sweeps again', async () => {
    expect(await json('record', 'show')).toMatchObject({ restoredAt: null, sweepsOff: false });
    expect(await json('record', 'restored')).toMatchObject({ sweepsOff: true, holdsWanted: true });
    expect(await json('record', 'sweep')).toMatchObject({
      ...{ sweepsOff: false, restoredAt: expect.any(String) as unknown },
    });
  });

  it('keeps records of the development zone [CLI-011]', async () => {
    await json('dev', 'txt', '_svc-verify.A.example.com.', 'svc-verify=1');
    await json('dev', 'txt', '_svc-verify.a.example.com', 'svc-verify=2');
    expect(await json('dev', 'txt', '_svc-verify.a.example.com', 'svc-verify=1', '--delete')).toEqual({
      name: '_svc-verify.a.example.com',
      values: ['svc-verify=2'],
    });
    const zone = JSON.parse(await readFile(join(dataDir, 'dev-zone.json'), 'utf8')) as object;
    expect(zone).toEqual({ '_svc-verify.a.example.com': ['svc-verify=2'] });
  });

  it.each([
    [['bogus'], 2, 'there is no command'],
    [['account', 'create', '--name', 'x'], 2, '--email'],
    [['account', 'create', '--name', 'x', '--email', 'a@example.com', '--colour', 'red'], 2, '--colour'],
    [['account', 'plan', 'acc_x'], 2, 'ACCOUNT PLAN'],
    [['key', 'create', '--project', 'prj_x', '--scope', 'all'], 2, '--scope'],
    [['encoding', 'pause', '--class', 'huge'], 2, '--class'],
    [['encoding', 'pause', '--account', 'acc_x'], 1, 'not_found'],
    [['account', 'plan', 'acc_x', 'pro'], 1, 'not_found'],
    [['video', 'hold', 'vid_x'], 1, 'not_found'],
    [['account', 'create', '--name', 'x', '--email', 'nobody'], 1, 'email'],
  ])('ends %j with code %i [CLI-002, CLI-003]', async (args, code, message) => {
    const { code: seen, out, err } = await millrace(...args, '--json');
    expect({ seen, out }).toEqual({ seen: code, out: '' });
    expect(err).toContain(message);
  });
});
