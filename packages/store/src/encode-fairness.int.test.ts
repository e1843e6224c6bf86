import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import {
  createTestDatabase,
  raceRounds,
  seedAccount,
  type SeededAccount,
  seedProcessingVideo,
  type TestDatabase,
} from '@millrace/testing';
import {
  type ClaimedTask,
  claimTask,
  createDatabase,
  createEncodeJob,
  type Database,
  finishJob,
  finishPlan,
  finishTask,
} from './index.ts';

let testDatabase: TestDatabase;
let db: Database;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  db = createDatabase({ connectionString: testDatabase.connectionString, logger: silentLogger, max: 16 });
});
afterAll(async () => {
  await db.close();
  await testDatabase.drop();
});
beforeEach(async () => {
  await db.query(
    `truncate task_outputs, encode_tasks, encode_jobs, encode_shares, object_prefixes, outbox, events,
       usage, usage_reservations, videos, projects, accounts cascade`,
  );
});

const claim = (taskClass: 'standard' | 'large' = 'standard', store = db): Promise<ClaimedTask | null> =>
  claimTask(store, { worker: 'w', class: taskClass, leaseMs: 60_000 });

async function queueVideo(account: SeededAccount): Promise<string> {
  const videoId = await seedProcessingVideo(db, account);
  await db.transaction((tx) => createEncodeJob(tx, { videoId, accountId: account.accountId }));
  return videoId;
}

/** An import, as `queueVideo` would write it one by one: its ids are older than those of any other job. */
async function queueVideos({ accountId, projectId }: SeededAccount, count: number): Promise<void> {
  await db.query(
    `with numbers as (
       select $1 || '_' || lpad(n::text, 6, '0') as n from generate_series(1, $3::int) as n
     ), made as (
       insert into videos (id, project_id, account_id, title, status, size_bytes, source_key, current_job_id, created_at, updated_at)
       select 'vid_' || n, $2, $1, 'Import', 'processing', 1000, 'k', 'job_' || n, now(), now() from numbers
     ), jobs as (
       insert into encode_jobs (id, video_id, account_id, created_at)
       select 'job_' || n, 'vid_' || n, $1, clock_timestamp() from numbers
     )
     insert into encode_tasks (id, job_id, video_id, account_id, kind, run_after, created_at)
     select 'tsk_' || n, 'job_' || n, 'vid_' || n, $1, 'plan', clock_timestamp(), now() from numbers`,
    [accountId, projectId, count],
  );
}

/** Ends a claimed task as an encoder does. @param videoCost CPU seconds of the video task that a plan makes */
async function end(task: ClaimedTask, videoCost: number): Promise<void> {
  const prefix = `p/${task.id}/${task.fence}/`;
  const durationMs = 1_000;
  if (task.kind === 'plan') {
    const tasks = (['video', 'audio', 'images'] as const).map((kind) => ({
      ...{ kind, index: 0 },
      cost: kind === 'video' ? videoCost : 2,
    }));
    const plan = { manifest: { v: 1 }, plannerVersion: 1, durationMs, tasks, report: {} };
    expect(await finishPlan(db, task, plan)).toBe('done');
  } else if (task.kind === 'assemble') {
    const encode = { prefix, indexKey: `${prefix}index.json`, qualities: ['360p'] as const, durationMs };
    expect(await finishJob(db, task, { ...encode, report: {} })).toBe('done');
  } else {
    expect(await finishTask(db, task, { prefix, output: {}, report: {} })).toBe('done');
  }
}

describe('an import of 200 videos', () => {
  interface Machines {
    slots: number;
    /** CPU seconds of a video task of the import, and of the single video. */
    costs: [number, number];
    plans?: [string, string];
    /** CPU seconds that the single video's account was given lately. */
    spent?: number;
    /** Tasks of the import that have ended when the single video comes. */
    ahead?: number;
  }

  /** Tasks of the import that were given out while one of the single video waited, from its upload until it is ready. */
  async function overtakings({ slots, costs, plans = ['agency', 'free'], spent = 0, ahead = 0 }: Machines) {
    const [importer, other] = [
      await seedAccount(db, { planId: plans[0] }),
      await seedAccount(db, { planId: plans[1] }),
    ];
    await queueVideos(importer, 200);
    await db.query('insert into encode_shares (account_id, recent, at) values ($1, $2, now())', [
      other.accountId,
      spent,
    ]);
    const running: ClaimedTask[] = [];
    const given: ClaimedTask[] = [];
    const fill = async (): Promise<void> => {
      while (running.length < slots) {
        const { rows } = await db.query(
          `select from encode_tasks where account_id = $1 and status = 'queued'`,
          [other.accountId],
        );
        const task = await claim();
        if (task === null) return;
        running.push(task);
        if (rows.length > 0 && task.accountId === importer.accountId) given.push(task);
      }
    };
    const step = async (): Promise<void> => {
      const task = running.shift();
      if (task === undefined) throw new Error('nothing runs');
      await end(task, task.accountId === importer.accountId ? costs[0] : costs[1]);
      await fill();
    };
    await fill();
    for (let ended = 0; ended < ahead; ended++) await step();
    const videoId = await queueVideo(other);
    const isReady = async (): Promise<boolean> =>
      (await db.query(`select from videos where id = $1 and status = 'ready'`, [videoId])).rowCount > 0;
    while (!(await isReady())) await step();
    return given.length;
  }

  it.each<[string, Machines]>([
    ['with one slot', { slots: 1, costs: [50, 50] }],
    ['with one slot, long under way', { slots: 1, costs: [50, 50], ahead: 30 }],
    ['with four slots', { slots: 4, costs: [50, 50], ahead: 10 }],
    ['with sixteen slots', { slots: 16, costs: [50, 50] }],
    ['that is a film among clips', { slots: 1, costs: [5, 5_000] }],
    ['that is a film among clips, with four slots', { slots: 4, costs: [5, 5_000], ahead: 10 }],
    ['of an account that has just encoded much', { slots: 1, costs: [5, 50], spent: 100_000 }],
    ['of an account that has just encoded much, with four slots', { slots: 4, costs: [5, 50], spent: 1e5 }],
    ['of a larger plan', { slots: 2, costs: [5, 500], plans: ['free', 'agency'] }],
    ['of the same plan', { slots: 2, costs: [5, 500], plans: ['pro', 'pro'] }],
  ])('delays a single video %s by one task at most [LIM-113]', async (_what, machines) => {
    expect(await overtakings(machines)).toBeLessThanOrEqual(1);
  });

  it('goes on between the single videos of an account that brings one after the other', async () => {
    const [importer, other] = [await seedAccount(db), await seedAccount(db)];
    await queueVideos(importer, 200);
    let turns = 0;
    for (let round = 0; round < 12; round++) {
      await queueVideo(other);
      for (let isOver = false; !isOver;) {
        const task = await claim();
        if (task === null) throw new Error('nothing to claim');
        await end(task, 50);
        if (task.accountId === importer.accountId) turns += 1;
        else isOver = task.kind === 'assemble';
      }
    }
    // A quarter of its share is what an import is due; each single video lets one task pass at most.
    expect(turns).toBeGreaterThanOrEqual(6);
    expect(turns).toBeLessThanOrEqual(12);
  });
});

describe('jobs at once', () => {
  it('are never more than the plan allows, however many encoders of both classes claim [LIM-112]', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    await queueVideos(account, 6);
    for (let round = 0; round < raceRounds; round++) {
      // Which jobs have come down to the encoders with more memory differs from round to round.
      await db.query(
        `update encode_tasks set status = 'queued', lease_until = null,
           class = case when (right(id, 1)::int + $1) % 3 = 0 then 'large' else 'standard' end`,
        [round],
      );
      const claims = await Promise.all(
        Array.from({ length: 12 }, (_, i) => claim(i % 2 === 0 ? 'large' : 'standard')),
      );
      const jobs = claims.flatMap((task) => (task === null ? [] : [task.jobId]));
      expect([round, new Set(jobs).size, jobs.length]).toEqual([round, 2, 2]);
    }
  });
});

describe('a claim', () => {
  interface PlanNode {
    'Node Type': string;
    'Relation Name'?: string;
    'Shared Hit Blocks': number;
    'Shared Read Blocks': number;
    Plans?: PlanNode[];
  }
  const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

  /** What the claim's own statement reads, as PostgreSQL executes it. */
  async function explained(): Promise<{ blocks: number; scanned: string[] }> {
    let root: PlanNode | undefined;
    const store: Database = {
      ...db,
      transaction: (work) =>
        db.transaction((tx) =>
          work({
            ...tx,
            query: async (text, values, name) => {
              if (name !== 'task-claim') return tx.query(text, values, name);
              const explain = `explain (analyze, buffers, format json) ${text}`;
              const { rows } = await tx.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(explain, values);
              root = rows[0]?.['QUERY PLAN'][0].Plan;
              return { rows: [], rowCount: 0 };
            },
          }),
        ),
    };
    await claim('standard', store);
    if (root === undefined) throw new Error('nothing was claimed');
    const scans = nodesOf(root).filter((node) => node['Node Type'] === 'Seq Scan');
    return {
      blocks: root['Shared Hit Blocks'] + root['Shared Read Blocks'],
      scanned: scans.map((node) => node['Relation Name'] ?? ''),
    };
  }

  it.each([
    ['of one account', 1],
    ['of fifty accounts', 50],
  ])('reads as much with 10,000 queued videos %s as with a few', async (_what, accounts) => {
    for (let i = 0; i < accounts; i++) await queueVideos(await seedAccount(db), 10_000 / accounts);
    await queueVideo(await seedAccount(db));
    await db.query('analyze encode_tasks, encode_jobs, encode_shares, accounts, plans');
    for (let i = 0; i < 20; i++) await claim();
    const { blocks, scanned } = await explained();
    expect(scanned).not.toContain('encode_tasks');
    expect(scanned).not.toContain('encode_jobs');
    expect(blocks).toBeLessThan(40 * (accounts + 2));
  });
});
