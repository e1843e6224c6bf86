import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { type Development, startDevelopment } from './development.ts';

const urls = { api: 'http://127.0.0.1:1', cdn: 'http://127.0.0.1:2', upload: 'http://127.0.0.1:3' };

let dataDir: string;
let development: Development | undefined;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'millrace-dev-'));
});
const close = async (): Promise<void> => {
  await development?.close();
  development = undefined;
};
afterEach(async () => {
  await close();
  await rm(dataDir, { recursive: true });
});
const settingsWith = async (env: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> => {
  await close();
  development = await startDevelopment({ dataDir, host: '127.0.0.1', urls, env, logger: silentLogger });
  return development.settings;
};

describe('what --dev sets', () => {
  it('is a provider of this machine for both names, the same over restarts, and a dashboard', async () => {
    const first = await settingsWith({});
    expect(first).toMatchObject({
      SSO_GOOGLE_ISSUER: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      DASHBOARD_HOSTS: 'dashboard.millrace.localhost',
      DASHBOARD_URL: urls.api,
      SMS_PROVIDER: 'log',
    });
    expect(first['SSO_MICROSOFT_ISSUER']).toBe(first['SSO_GOOGLE_ISSUER']);
    const second = await settingsWith({});
    expect(second['SSO_GOOGLE_ISSUER']).toBe(first['SSO_GOOGLE_ISSUER']);
    expect(second['SSO_GOOGLE_CLIENT_SECRET']).not.toBe(first['SSO_GOOGLE_CLIENT_SECRET']);
  });

  it('leaves alone what the environment sets up', async () => {
    const env = { SSO_GOOGLE_CLIENT_ID: 'mine', DASHBOARD_HOSTS: 'app.example.com', SMS_PROVIDER: 'twilio' };
    const settings = await settingsWith(env);
    const names = Object.keys(settings).filter((name) => /GOOGLE|DASHBOARD/.test(name));
    expect([names, settings['SMS_PROVIDER']]).toEqual([[], 'twilio']);
    expect(settings['SSO_MICROSOFT_CLIENT_ID']).toBe('millrace-dev');
    expect(development?.consoleUrl).toBe('http://127.0.0.1:1/dev/');
  });
});
