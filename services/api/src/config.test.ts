import { describe, expect, it } from '@jest/globals';
import { apiConfig } from './config.ts';

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
