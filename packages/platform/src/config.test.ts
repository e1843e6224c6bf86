import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { ConfigError, loadConfig, maskConfig } from './config.ts';

const schema = z.object({
  PORT: z.coerce.number().int().min(0).max(65_535).default(8_080),
  MODE: z.enum(['a', 'b']),
  ADMIN_TOKEN: z.string().min(5).optional(),
});

describe('loadConfig', () => {
  it('reads, converts and fills in; an empty variable is unset, others are ignored', () => {
    expect(loadConfig(schema, { MODE: 'a', PORT: '1', ADMIN_TOKEN: '', HOME: '/' })).toEqual({
      MODE: 'a',
      PORT: 1,
    });
    expect(loadConfig(schema, { MODE: 'b', PORT: '' })).toEqual({ MODE: 'b', PORT: 8_080 });
  });

  it('lists every problem at once, and no value', () => {
    const load = (): unknown => loadConfig(schema, { PORT: 'x', ADMIN_TOKEN: 'hush' });
    expect(load).toThrow(ConfigError);
    try {
      load();
    } catch (error) {
      const { problems, message } = error as ConfigError;
      expect(problems.map((problem) => problem.split(':')[0])).toEqual(['PORT', 'MODE', 'ADMIN_TOKEN']);
      for (const problem of problems) expect(message).toContain(problem);
      expect(message).not.toContain('hush');
    }
  });
});

describe('maskConfig', () => {
  it('hides secrets by their name and credentials in addresses, and shows the rest', () => {
    expect(
      maskConfig({
        API_PORT: 1,
        ADMIN_TOKEN: 'hush',
        CURSOR_KEYS: { signing: 'hush' },
        INTERNAL_SECRET: 'hush',
        DB_PASSWORD: 'hush',
        DATABASE_URL: 'postgres://user:hush@db.example:5432/x?a=b@c',
        API_URL: 'https://api.example.com',
        HOSTS: ['a'],
        MISSING_TOKEN: undefined,
      }),
    ).toEqual({
      API_PORT: 1,
      ADMIN_TOKEN: '***',
      CURSOR_KEYS: '***',
      INTERNAL_SECRET: '***',
      DB_PASSWORD: '***',
      DATABASE_URL: 'postgres://***@db.example:5432/x?a=b@c',
      API_URL: 'https://api.example.com',
      HOSTS: ['a'],
      MISSING_TOKEN: undefined,
    });
  });
});
