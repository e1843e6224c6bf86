import { expect, it } from '@jest/globals';
import { seedAccount } from '@millrace/testing';
import {
  announcePlans,
  applyPlan,
  type PlanOwner,
  readPlanLimits,
  type RecordedPlan,
  setPlan,
} from './index.ts';
import { db, useDatabase } from './testing/database.ts';

useDatabase();

const owner: PlanOwner = { uid: 'one', generation: 1, createdAt: new Date('2030-01-01T00:00:00Z') };
const read = async (): Promise<RecordedPlan> => {
  const plan = await readPlanLimits(db, 'starter');
  if (plan === null) throw new Error('there is no such plan');
  return plan;
};
const apply = async (projects: number | null, by: Partial<PlanOwner> = {}): Promise<boolean> => {
  const { limits } = await read();
  const input = { planId: 'starter', actor: 'kubernetes:default/starter', owner: { ...owner, ...by } };
  return db.transaction((tx) => applyPlan(tx, { ...input, limits: { ...limits, projects } }));
};

it('belongs to the newest generation of an object, or to an object that was made later', async () => {
  expect((await read()).owner).toBeNull();
  expect(await apply(7)).toBe(true);
  expect(await apply(8, { generation: 3 })).toBe(true);
  expect(await apply(9, { generation: 2 })).toBe(false);
  const before = { uid: 'two', createdAt: new Date('2029-01-01T00:00:00Z') };
  expect(await apply(9, before)).toBe(false);
  expect((await read()).limits.projects).toBe(8);
  const after = { uid: 'two', createdAt: new Date('2031-01-01T00:00:00Z') };
  expect(await apply(null, after)).toBe(true);
  expect(await read()).toMatchObject({ limits: { projects: null }, owner: { ...after, generation: 1 } });
});

it('is told to the CDN for each of its accounts, once, also for those that came at that moment', async () => {
  await db.query('update plans set announced_revision = revision');
  const onPlan = [];
  for (let n = 0; n < 3; n++) onPlan.push((await seedAccount(db, { planId: 'starter' })).accountId);
  await seedAccount(db, { planId: 'pro' });
  await apply(5, { uid: 'three', createdAt: new Date('2032-01-01T00:00:00Z') });
  expect(await announcePlans(db, { limit: 2 })).toBe(3);
  expect(await announcePlans(db, { limit: 2 })).toBe(0);
  const { rows } = await db.query<{ key: string }>(
    `select key from outbox where key like 'acc_%' order by key`,
  );
  expect(rows.map(({ key }) => key)).toEqual([...onPlan].sort());

  await seedAccount(db, { planId: 'starter' });
  expect(await announcePlans(db, { limit: 2 })).toBe(1);
  await db.query(`update plans set updated_at = now() - interval '2 minutes'`);
  expect(await announcePlans(db, { limit: 2 })).toBe(0);
  const { rows: unannounced } = await db.query('select id from plans where announced_revision <> revision');
  expect(unannounced).toEqual([]);
});

it('is told to an account that came from another plan of the same revision', async () => {
  const { accountId } = await seedAccount(db, { planId: 'pro' });
  await db.query('update plans set revision = 50, announced_revision = 49');
  await db.query('update accounts set plan_revision = 50');
  await db.transaction((tx) => setPlan(tx, { accountId, planId: 'starter', actor: 'test' }));
  expect(await announcePlans(db)).toBe(1);
});
