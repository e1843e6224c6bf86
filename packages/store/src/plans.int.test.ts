import { describe, expect, it } from '@jest/globals';
import { db, useDatabase } from './testing/database.ts';

useDatabase();

/** Some columns of the four plans, from the smallest to the largest; null is no limit. */
async function columns(...names: string[]): Promise<unknown[][]> {
  const { rows } = await db.query<Record<string, unknown>>(
    `select ${names.join(', ')} from plans order by array_position(array['free', 'starter', 'pro', 'agency'], id)`,
  );
  return names.map((name) => rows.map((row) => row[name]));
}

const GiB = 1024 ** 3;
const hour = 3_600;

describe('the plans that every installation begins with', () => {
  it('have prices in halalas, but Free none [LIM-001, PLN-007]', async () => {
    expect(await columns('name', 'price_amount')).toEqual([
      ['Free', 'Starter', 'Pro', 'Agency'],
      [null, 9_900, 29_900, 99_900],
    ]);
  });

  it('allow so many seconds and minutes [LIM-002, LIM-003, LIM-004]', async () => {
    const of = await columns('stored_seconds', 'upload_seconds_per_period', 'watched_minutes_per_period');
    expect(of).toEqual([
      [36_000, 360_000, 1_800_000, null],
      [18_000, 180_000, 900_000, null],
      [5_000, 50_000, 500_000, null],
    ]);
  });

  it('allow so many domains and projects [LIM-005, LIM-006]', async () => {
    expect(await columns('verified_domains', 'projects')).toEqual([
      [1, 3, 10, null],
      [1, 3, 10, null],
    ]);
  });

  it('differ in quality and branding [LIM-007, LIM-008]', async () => {
    expect(await columns('max_quality', 'white_label')).toEqual([
      ['720p', '1080p', '2160p', '2160p'],
      [false, false, true, true],
    ]);
  });

  it('take files and encode jobs up to a size and a number [LIM-009, LIM-010, LIM-011]', async () => {
    expect(await columns('max_file_bytes', 'max_source_seconds', 'encode_jobs')).toEqual([
      [5 * GiB, 20 * GiB, 100 * GiB, 500 * GiB],
      [4 * hour, 8 * hour, 12 * hour, 24 * hour],
      [2, 4, 16, 64],
    ]);
  });
});
