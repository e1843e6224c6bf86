import { describe, expect, it } from '@jest/globals';
import { race, raceRounds, seedAccount, seedProcessingVideo } from '@millrace/testing';
import {
  addDomain,
  claimTask,
  createApiKey,
  createEncodeJob,
  createProject,
  lockUsage,
  recordDomainCheck,
  reserveChallenge,
  type Transaction,
} from './index.ts';
import { releaseReservations } from './reservations.ts';
import { db, useDatabase } from './testing/database.ts';
import { reserveEncode } from './usage.ts';
import { createEndpoint } from './webhook-endpoints.ts';

/** There is room for one more and three ask at once, 200 times: one gets it, however they interleave. */

const now = new Date();
useDatabase();

type Contender = (tx: Transaction, n: number) => Promise<unknown>;
/** How three transactions at once ended, sorted. */
const three = async (contend: Contender): Promise<string[]> =>
  (await race([0, 1, 2].map((n) => () => db.transaction((tx) => contend(tx, n))))).sort();
/** One got it, and the others were refused. */
const oneOf = (code: string): string[] => ['ok', code, code].sort();

describe('asked for by three at once, 200 times', () => {
  it('projects stop at the plan’s number [LIM-104, PRJ-202]', async () => {
    const { accountId } = await seedAccount(db, { planId: 'starter' });
    await db.transaction((tx) => createProject(tx, { accountId, name: 'Second', now }));
    for (let round = 0; round < raceRounds; round++) {
      const outcomes = await three((tx, n) => createProject(tx, { accountId, name: `P${n}`, now }));
      expect(outcomes).toEqual(oneOf('plan_limit_reached'));
      await db.query(`delete from projects where account_id = $1 and name like 'P%'`, [accountId]);
    }
  });

  it('verified domains stop at the plan’s number, when added [LIM-104, DOM-213]', async () => {
    const { accountId, projectId } = await seedAccount(db, { planId: 'starter' });
    const add: Contender = (tx, n) =>
      addDomain(tx, { accountId, projectId, hostname: `a${n}.example.com`, verified: true, now });
    for (const n of [3, 4]) await db.transaction((tx) => add(tx, n));
    for (let round = 0; round < raceRounds; round++) {
      expect(await three(add)).toEqual(oneOf('plan_limit_reached'));
      await db.query(`delete from domains where account_id = $1 and hostname < 'a3'`, [accountId]);
    }
  });

  it('verified domains stop at the plan’s number, when verified [LIM-104, DOM-213]', async () => {
    const { accountId, projectId } = await seedAccount(db, { planId: 'starter' });
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) {
      const hostname = `v${n}.example.com`;
      ids.push((await db.transaction((tx) => addDomain(tx, { accountId, projectId, hostname, now }))).id);
    }
    await db.query(`update domains set status = 'verified' where id = any($1)`, [ids.slice(3)]);
    const look = { by: 'customer', seen: 'present', found: [], at: now } as const;
    for (let round = 0; round < raceRounds; round++) {
      const outcomes = await three((tx, n) =>
        recordDomainCheck(tx, { accountId, domainId: ids[n] ?? '', ...look }),
      );
      expect(outcomes).toEqual(oneOf('plan_limit_reached'));
      await db.query(`update domains set status = 'pending' where id = any($1)`, [ids.slice(0, 3)]);
    }
  });

  it('webhook endpoints stop at five [WHE-202]', async () => {
    const { accountId, projectId } = await seedAccount(db);
    const create: Contender = (tx) => {
      const endpoint = { url: 'https://hooks.example.com/', events: ['video.ready'] } as const;
      return createEndpoint(tx, { accountId, projectId, ...endpoint, seal: () => 'new' });
    };
    for (let n = 0; n < 4; n++) await db.transaction((tx) => create(tx, n));
    await db.query(`update webhook_endpoints set secret = 'kept' where project_id = $1`, [projectId]);
    for (let round = 0; round < raceRounds; round++) {
      expect(await three(create)).toEqual(oneOf('endpoint_limit_reached'));
      await db.query(`delete from webhook_endpoints where project_id = $1 and secret = 'new'`, [projectId]);
    }
  });

  it('API keys stop at fifty [KEY-204]', async () => {
    const { projectId } = await seedAccount(db);
    const create: Contender = (tx, n) =>
      createApiKey(tx, { projectId, name: `K${n}`, scope: 'full', expiresAt: null, now });
    for (let n = 0; n < 49; n++) await db.transaction((tx) => create(tx, n));
    await db.query(`update api_keys set name = 'kept' where project_id = $1`, [projectId]);
    for (let round = 0; round < raceRounds; round++) {
      expect(await three(create)).toEqual(oneOf('plan_limit_reached'));
      await db.query(`delete from api_keys where project_id = $1 and name <> 'kept'`, [projectId]);
    }
  });

  it('upload and stored seconds are reserved to the limit and no further [LIM-103, LIM-104]', async () => {
    const account = await seedAccount(db, { planId: 'starter' });
    const { accountId } = account;
    const videos: string[] = [];
    for (let n = 0; n < 3; n++) videos.push(await seedProcessingVideo(db, account));
    await db.transaction((tx) => lockUsage(tx, accountId));
    // Room for one minute of each.
    await db.query(
      'update usage set upload_ms = 179_940_000, stored_ms = 359_940_000 where account_id = $1',
      [accountId],
    );
    for (let round = 0; round < raceRounds; round++) {
      const outcomes = await three(async (tx, n) =>
        reserveEncode(tx, await lockUsage(tx, accountId), { videoId: videos[n] ?? '', durationMs: 60_000 }),
      );
      expect(outcomes).toEqual(['ok', 'stored', 'stored']);
      const { rows } = await db.query(
        'select upload_ms as upload, stored_ms as stored from usage where account_id = $1',
        [accountId],
      );
      expect(rows).toEqual([{ upload: 180_000_000, stored: 360_000_000 }]);
      await three((tx, n) => releaseReservations(tx, videos[n] ?? '', { refundUpload: true }));
    }
  });

  it('encode jobs of an account run no more at once than its plan allows [LIM-112]', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    for (let n = 0; n < 3; n++) {
      const videoId = await seedProcessingVideo(db, account);
      await db.transaction((tx) => createEncodeJob(tx, { videoId, accountId: account.accountId }));
    }
    const claim = async (): Promise<string> => {
      const task = await claimTask(db, { worker: 'w', class: 'standard', leaseMs: 60_000 });
      return task === null ? 'none' : 'claimed';
    };
    for (let round = 0; round < raceRounds; round++) {
      expect((await race([claim, claim, claim])).sort()).toEqual(['claimed', 'claimed', 'none']);
      await db.query(`update encode_tasks set status = 'queued', worker = null, lease_until = null`);
    }
  });

  it('codes for phones stop at five an hour, of an account and of a number [PHN-208, PHN-209]', async () => {
    const [mine, theirs] = [await seedAccount(db), await seedAccount(db)].map(({ accountId }) => accountId);
    const hash = (text: string): Buffer => Buffer.from(text.padEnd(32, '.'));
    const ask = (accountId = '', number = 'one') =>
      reserveChallenge(db, { accountId, phoneHashes: [hash(number)], codeHashOf: hash, now });
    // Four of my five, all for one number.
    for (let n = 0; n < 4; n++) await ask(mine);
    const keep = `array(select id from phone_challenges order by created_at, id limit 4)`;
    const { rows } = await db.query<{ kept: string[] }>(`select ${keep} as kept`);
    for (let round = 0; round < raceRounds; round++) {
      const contenders =
        round % 2 === 0
          ? ['two', 'three', 'four'].map((number) => () => ask(mine, number))
          : [mine, theirs, theirs].map((account) => () => ask(account));
      expect((await race(contenders)).sort()).toEqual(oneOf('phone_rate_limited'));
      await db.query('delete from phone_challenges where id <> all($1)', [rows[0]?.kept ?? []]);
    }
  });
});
