import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { newApiKey, newId } from '@millrace/domain';
import { silentLogger } from '@millrace/platform';
import { createTestDatabase, seedAccount, type SeededAccount, seedProcessingVideo } from '@millrace/testing';
import { createDatabase, type Database, type Queryable } from './db.ts';
import { keyHoldersOfVideos } from './key-holders.ts';

describe('look-ups of keys and videos', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let db: Database;
  let counted: number[];
  let find: ReturnType<typeof keyHoldersOfVideos>;
  beforeAll(async () => {
    database = await createTestDatabase();
    db = createDatabase({ connectionString: database.connectionString, logger: silentLogger, max: 1 });
  });
  afterAll(async () => {
    await db.close();
    await database.drop();
  });
  beforeEach(() => {
    counted = [];
    const counting: Queryable = {
      query: (text, values, name) => {
        counted.push((values?.[0] as string[]).length);
        return db.query(text, values, name);
      },
    };
    find = keyHoldersOfVideos(counting);
  });

  interface Customer extends SeededAccount {
    keyId: string;
    videoId: string;
  }
  const addCustomer = async (): Promise<Customer> => {
    const account = await seedAccount(db);
    const { id: keyId, prefix, secretHash } = newApiKey(new Date());
    await db.query(
      `insert into api_keys (id, project_id, name, scope, prefix, secret_hash, created_at)
       values ($1, $2, 'Test', 'full', $3, $4, now())`,
      [keyId, account.projectId, prefix, secretHash],
    );
    return { ...account, keyId, videoId: await seedProcessingVideo(db, account) };
  };

  it('share one statement in one turn, and each gets its own answer', async () => {
    const [one, two] = [await addCustomer(), await addCustomer()];
    const answers = await Promise.all([
      find(one.keyId, one.videoId),
      find(newId('key'), one.videoId),
      find(two.keyId, one.videoId),
      find(two.keyId, two.videoId),
      find(one.keyId, one.videoId),
    ]);
    expect(counted).toEqual([5]);
    expect(
      answers.map((found) => found && [found.holder.keyId, found.holder.projectId, found.video?.id ?? null]),
    ).toEqual([
      [one.keyId, one.projectId, one.videoId],
      null,
      [two.keyId, two.projectId, null],
      [two.keyId, two.projectId, two.videoId],
      [one.keyId, one.projectId, one.videoId],
    ]);
    expect(answers[0]).not.toBe(answers[4]);
    // What is answered carries nothing of the key.
    expect(Object.keys(answers[0]?.video ?? {})).not.toContain('secretHash');
  });

  it('are read anew each time', async () => {
    const { keyId, videoId } = await addCustomer();
    expect((await find(keyId, videoId))?.holder.revokedAt).toBeNull();
    await db.query('update api_keys set revoked_at = now() where id = $1', [keyId]);
    expect((await find(keyId, videoId))?.holder.revokedAt).toBeInstanceOf(Date);
    await db.query('update videos set deleted_at = now() where id = $1', [videoId]);
    expect((await find(keyId, videoId))?.video).toBeNull();
  });

  it('are 64 in one statement at most', async () => {
    const { keyId, videoId } = await addCustomer();
    const answers = await Promise.all(Array.from({ length: 130 }, () => find(keyId, videoId)));
    expect(answers.every((found) => found?.video?.id === videoId)).toBe(true);
    expect(counted).toEqual([64, 64, 2]);
  });

  it('fail together, and the next ones do not', async () => {
    let broken = true;
    const failing = keyHoldersOfVideos({
      query: (text, values, name) =>
        broken ? Promise.reject(new Error('the record is away')) : db.query(text, values, name),
    });
    const { keyId, videoId } = await addCustomer();
    const outcomes = await Promise.allSettled([failing(keyId, videoId), failing(keyId, videoId)]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    broken = false;
    expect((await failing(keyId, videoId))?.video?.id).toBe(videoId);
  });

  it('cost the planner the same however many they are, so that it plans them once', async () => {
    let text = '';
    const heard = keyHoldersOfVideos({
      query: (...query) => {
        [text] = query;
        return db.query(...query);
      },
    });
    await heard(newId('key'), newId('vid'));
    const costOf = async (many: number): Promise<number | undefined> => {
      const ids = Array.from({ length: many }, () => newId('key'));
      const { rows } = await db.query<{ 'QUERY PLAN': [{ Plan: { 'Total Cost': number } }] }>(
        `explain (format json) ${text}`,
        [ids, ids],
      );
      return rows[0]?.['QUERY PLAN'][0].Plan['Total Cost'];
    };
    expect(await costOf(1)).toBeGreaterThan(0);
    expect(await costOf(1)).toBe(await costOf(50));
  });
});
