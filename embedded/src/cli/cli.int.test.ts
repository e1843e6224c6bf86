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

  it('creates an account and what it owns, one JSON document a command', async () => {
    const created = await json(
      'account',
      'create',
      '--name',
      'Acme',
      '--email',
      'a@example.com',
      '--plan',
      'pro',
    );
    const account = created['account'] as { id: string; planId: string };
    expect(account.planId).toBe('pro');
    const project = await json('project', 'create', '--account', account.id, '--name', 'Site');
    const key = await json('key', 'create', '--project', String(project['id']), '--scope', 'playback');
    expect(key).toMatchObject({ scope: 'playback', value: expect.stringMatching(/^svk_/) as unknown });
    const domain = await json(
      'domain',
      'add',
      '--project',
      String(project['id']),
      '--hostname',
      'A.Example.com',
      '--verified',
    );
    expect(domain).toMatchObject({ hostname: 'a.example.com', status: 'verified' });
    const user = created['user'] as { id: string };
    expect(await json('session', 'create', '--user', user.id)).toEqual({
      cookie: expect.any(String) as unknown,
    });
    expect(await json('account', 'plan', account.id, 'free')).toMatchObject({ planId: 'free' });
    expect(await json('usage', 'show', account.id)).toMatchObject({
      plan: { id: 'free', name: 'Free' },
      limits: { storedSeconds: 36_000, maxQuality: '720p' },
      usage: { storedSeconds: 0, watchedMinutes: 0, verifiedDomains: 1, overageMinutes: 0 },
    });
  });

  it('lists topics, and replays what is dead of one', async () => {
    const { data } = (await json('topics')) as { data: { name: string }[] };
    expect(data.map((topic) => topic.name)).toContain('millrace.video.events');
    await json('dead', 'replay', 'millrace.video.events');
  });

  it('keeps records of the development zone', async () => {
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
    [['account', 'plan', 'acc_x', 'pro'], 1, 'not_found'],
    [['video', 'hold', 'vid_x'], 1, 'not_found'],
    [['account', 'create', '--name', 'x', '--email', 'nobody'], 1, 'email'],
  ])('ends %j with code %i', async (args, code, message) => {
    const { code: seen, out, err } = await millrace(...args, '--json');
    expect({ seen, out }).toEqual({ seen: code, out: '' });
    expect(err).toContain(message);
  });
});
