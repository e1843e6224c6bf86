import { describe, expect, it } from '@jest/globals';
import { settings } from './settings.ts';

const GIB = 1024 ** 3;
const values = (memoryBytes: number): Record<string, string> =>
  Object.fromEntries(
    settings(5432, memoryBytes)
      .filter((arg) => arg !== '-c')
      .map((arg) => arg.split('=', 2) as [string, string]),
  );

describe("PostgreSQL's settings", () => {
  it('listen on loopback alone', () => {
    expect(values(8 * GIB)).toMatchObject({
      listen_addresses: '127.0.0.1',
      port: '5432',
      unix_socket_directories: '',
    });
  });

  it.each([
    [0.5, '64MB', '256MB'],
    [4, '256MB', '2048MB'],
    [64, '512MB', '32768MB'],
  ])('take a small share of %s GiB of memory', (gib, shared, cache) => {
    expect(values(gib * GIB)).toMatchObject({ shared_buffers: shared, effective_cache_size: cache });
  });
});
