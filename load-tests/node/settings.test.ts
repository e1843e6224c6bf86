import { describe, expect, it } from '@jest/globals';
import { readSettings } from '../src/settings.ts';

const least = {
  ...{ API_URL: 'https://api.example/', PROJECT_ID: 'prj_1', API_KEY: 'svk_secret', DOMAIN: 'site.example' },
};

describe('settings', () => {
  it('take four variables, and have the smoke profile by default', () => {
    expect(readSettings({ ...least, VIDEO_IDS: '', SCALE: '' }, [])).toEqual({
      ...{ apiUrl: 'https://api.example', projectId: 'prj_1', apiKey: 'svk_secret', domain: 'site.example' },
      ...{ profile: 'smoke', scale: 1, videoIds: [], quietMs: 2_000, admin: null, webhooks: null },
      sourceSeconds: 60,
      viewing: {
        ...{ watchMs: 20_000, tokenSeconds: 300, renewBeforeMs: 30_000, bufferMs: 30_000 },
        ...{ switchEvery: 8, seekEvery: 20 },
      },
    });
  });

  it('are longer in the full profile, and as they are told', () => {
    const told = { ...least, PROFILE: 'full', VIDEO_IDS: 'vid_1,vid_2', SCALE: '0.5', EVENTS: '7' };
    const more = {
      ADMIN_URL: 'http://127.0.0.1:1',
      ADMIN_TOKEN: 't',
      WEBHOOK_URL: 'u',
      WEBHOOK_DEAD_URL: 'd',
    };
    expect(readSettings({ ...told, ...more }, ['admin', 'webhooks'])).toMatchObject({
      ...{ profile: 'full', scale: 0.5, videoIds: ['vid_1', 'vid_2'], quietMs: 10_000 },
      viewing: { watchMs: 120_000 },
      admin: { url: 'http://127.0.0.1:1', token: 't' },
      webhooks: { url: 'u', slowUrl: null, deadUrl: 'd', events: 7 },
    });
  });

  it('want the length of a film of the operator’s own', () => {
    expect(() => readSettings({ ...least, SOURCE: '/film.mp4' }, [])).toThrow('SOURCE_SECONDS is not set');
    const told = { ...least, SOURCE: '/film.mp4', SOURCE_SECONDS: '600' };
    expect(readSettings(told, [])).toMatchObject({ sourceSeconds: 600 });
  });

  it('name everything that is missing or wrong at once, without values', () => {
    const wrong = {
      API_URL: 'api.example',
      API_KEY: 'svk_secret',
      PROFILE: 'huge',
      SCALE: '-1',
      EVENTS: 'many',
    };
    const read = () =>
      readSettings({ ...wrong, TOKEN_SECONDS: '59', SEEK_EVERY: 'Infinity' }, ['admin', 'webhooks']);
    const problems = [
      'PROFILE is neither smoke nor full',
      'API_URL is no http or https address',
      'PROJECT_ID is not set',
      'DOMAIN is not set',
      'SCALE is no number from 0.01 on',
      'TOKEN_SECONDS is no number from 60 on',
      'SEEK_EVERY is no number from 0 on',
      'ADMIN_URL is not set',
      'ADMIN_TOKEN is not set',
      'WEBHOOK_URL is not set',
      'EVENTS is no number from 1 on',
    ];
    expect(read).toThrow(`settings: ${problems.join('; ')}`);
  });
});
