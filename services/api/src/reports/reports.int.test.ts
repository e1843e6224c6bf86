import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type Report } from '@millrace/contract';
import { newId } from '@millrace/domain';
import { type Answer, createTenant, createTestApi, type Tenant, type TestApi } from '../testing/test-api.ts';

let api: TestApi;
let me: Tenant;
let videoId: string;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  me = await createTenant(api);
  videoId = newId('vid');
  await api.store.query(
    `insert into videos (id, project_id, account_id, title, status, size_bytes, created_at, updated_at)
     values ($1, $2, $3, 'Film', 'ready', 1, now(), now())`,
    [videoId, me.projectId, me.accountId],
  );
});

const file = (body: unknown, key?: string, tenant = me): Promise<Answer<Report>> =>
  api.ask<Report>(`POST /v1/projects/${tenant.projectId}/videos/${videoId}/reports`, {
    ...{ bearer: tenant.full, body },
    headers: key === undefined ? {} : { 'idempotency-key': key },
  });
const alerts = (): unknown[] =>
  api.log.lines.filter(
    ({ level, message, fields }) =>
      level === 'warn' && message === 'video reported' && fields['videoId'] === videoId,
  );
const stored = async (): Promise<number> =>
  (await api.store.query('select from reports where video_id = $1', [videoId])).rowCount;

describe('filing a report', () => {
  it('answers what was stored, and alerts the team at once [RPT-001, RPT-203, RPT-204]', async () => {
    const { status, body } = await file({ reason: 'Copyright', detail: 'Mine' });
    expect([status, body]).toEqual([201, { id: body.id, videoId, reason: 'Copyright' }]);
    expect(body.id).toMatch(/^rep_/);
    expect([alerts().length, await stored()]).toEqual([1, 1]);
    expect(await api.metrics.render()).toMatch(/^millrace_reports_total\S* [1-9]/m);
  });

  it('again with the same key gets the first report, and raises no second alert [RPT-205]', async () => {
    const answers = [await file({ reason: 'Spam' }, 'k1'), await file({ reason: 'Spam' }, 'k1')];
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(answers[1]?.body).toEqual(answers[0]?.body);
    expect([alerts().length, await stored()]).toEqual([1, 1]);
    const other = await file({ reason: 'Other' }, 'k1');
    expect([other.status, other.problem.code]).toEqual([422, 'invalid_request']);
  });

  it('without a key files each [RPT-206]', async () => {
    await file({ reason: 'Spam' });
    await file({ reason: 'Spam' });
    expect([alerts().length, await stored()]).toEqual([2, 2]);
  });

  it.each<[object, string]>([
    [{}, 'reason'],
    [{ reason: '' }, 'reason'],
    [{ reason: 'x'.repeat(201) }, 'reason'],
    [{ reason: 'x', detail: 'x'.repeat(2_001) }, 'detail'],
    [{ reason: 'x', detail: null }, 'detail'],
    [{ reason: 'x', more: 1 }, 'more'],
  ])('as %j is 400 and names the field [RPT-201, RPT-202]', async (body, path) => {
    const { status, problem } = await file(body);
    expect([status, problem.code, problem.errors?.[0]?.path]).toEqual([400, 'invalid_request', path]);
    expect(await stored()).toBe(0);
  });

  it('takes the longest reason and detail, and an empty detail [RPT-201, RPT-202]', async () => {
    expect((await file({ reason: '🎬'.repeat(200), detail: '' })).status).toBe(201);
    expect((await file({ reason: 'x', detail: '🎬'.repeat(2_000) })).status).toBe(201);
  });

  it('of a video that is deleted, unknown or another’s is 404', async () => {
    const other = await createTenant(api);
    expect((await file({ reason: 'x' }, undefined, other)).status).toBe(404);
    await api.store.query('update videos set deleted_at = now() where id = $1', [videoId]);
    expect((await file({ reason: 'x' })).status).toBe(404);
    expect(alerts()).toEqual([]);
  });
});
