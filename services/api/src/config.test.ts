import { describe, expect, it } from '@jest/globals';
import { settingProblems } from '@millrace/testing';
import { apiConfig, apiProcessConfig } from './config.ts';

const hosts = (text: string | undefined) => apiConfig.shape.DASHBOARD_HOSTS.safeParse(text).data;

describe('DASHBOARD_HOSTS', () => {
  it('are host names as browsers write them in an origin', () => {
    expect(hosts(undefined)).toEqual([]);
    expect(hosts('App.Example.com, admin.example.net,')).toEqual(['app.example.com', 'admin.example.net']);
  });

  it.each(['https://app.example.com', 'app.example.com:8443', '*.example.com', 'a b', 'app.example.com/'])(
    'are refused at the start as %p',
    (text) => {
      expect(hosts(`ok.example.com,${text}`)).toBeUndefined();
    },
  );
});

describe('who sends codes to phones', () => {
  const needed = {
    ...{ API_URL: 'https://api.example.com', CDN_URL: 'https://cdn.example.com' },
    DOCS_URL: 'https://docs.example.com',
    ...Object.fromEntries(
      ['CURSOR_KEYS', 'PLAYBACK_KEYS', 'WEBHOOK_SECRET_KEYS'].map((name) => [name, `k:${'x'.repeat(32)}`]),
    ),
    INTERNAL_SECRET: 'x'.repeat(32),
  };
  const PHONE_KEYS = `h:${'h'.repeat(32)}`;
  const wrong = (env: Record<string, string>): string[] =>
    (apiConfig.safeParse({ ...needed, ...env }).error?.issues ?? []).map(({ path }) => path.join('.'));

  it('is nobody unless told', () => {
    expect(wrong({})).toEqual([]);
    expect(apiConfig.parse(needed)).not.toHaveProperty('SMS_PROVIDER');
  });

  it('is never the log in production [PHN-003]', () => {
    expect(wrong({ SMS_PROVIDER: 'log', PHONE_KEYS })).toEqual([]);
    expect(wrong({ SMS_PROVIDER: 'log', PHONE_KEYS, NODE_ENV: 'production' })).toEqual(['SMS_PROVIDER']);
  });

  it('needs its settings, and keys for the numbers', () => {
    expect(wrong({ SMS_PROVIDER: 'log' })).toEqual(['PHONE_KEYS']);
    expect(wrong({ SMS_PROVIDER: 'twilio', PHONE_KEYS })).toEqual([
      ...['TWILIO_ACCOUNT_SID', 'TWILIO_AUTH_TOKEN', 'TWILIO_FROM'],
    ]);
    expect(wrong({ SMS_PROVIDER: 'other', PHONE_KEYS })).toEqual(['SMS_PROVIDER']);
  });

  it('and who identifies people is asked by https, but on this machine', () => {
    const of = (SSO_GOOGLE_ISSUER: string): string[] => wrong({ SSO_GOOGLE_ISSUER });
    expect(['https://idp.example.com', 'http://127.0.0.1:1', 'http://localhost:1'].flatMap(of)).toEqual([]);
    expect(of('http://idp.example.com')).toEqual(['SSO_GOOGLE_ISSUER']);
  });
});

describe('the settings of an API that is a process of its own', () => {
  const keySet = `k:${'x'.repeat(32)}`;
  const needed = {
    ...{
      API_URL: 'https://api.example.com',
      CDN_URL: 'https://cdn.example.com',
      DOCS_URL: 'https://example.com',
    },
    ...{ CURSOR_KEYS: keySet, PLAYBACK_KEYS: keySet, WEBHOOK_SECRET_KEYS: keySet },
    ...{
      INTERNAL_SECRET: 'x'.repeat(32),
      DATABASE_URL: 'postgres://millrace@db/millrace',
      S3_BUCKET: 'millrace',
    },
  };

  it('are right with what has no default, and name all that is missing', () => {
    expect(settingProblems(apiProcessConfig, needed)).toEqual([]);
    expect(settingProblems(apiProcessConfig, {})).toEqual(Object.keys(needed).sort());
  });

  it('are read together with what they belong to', () => {
    const halves = { ...needed, SMS_PROVIDER: 'log', S3_ACCESS_KEY_ID: 'key' };
    expect(settingProblems(apiProcessConfig, halves)).toEqual(['PHONE_KEYS', 'S3_SECRET_ACCESS_KEY']);
  });
});
