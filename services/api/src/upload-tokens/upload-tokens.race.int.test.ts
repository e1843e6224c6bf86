import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Upload } from '@millrace/contract';
import { parseKeySet, randomSegment, signUploadToken } from '@millrace/domain';
import { raceRounds } from '@millrace/testing';
import { type Answer, createTenant, createTestApi, type Tenant, type TestApi } from '../testing/test-api.ts';

/** Browsers spend one upload token at the same time, 200 times. */

const keys = parseKeySet(`u1:${'u'.repeat(32)}`);
const domain = 'shop.example.com';
let api: TestApi;
let me: Tenant;
/** Multipart uploads that are open in the store. */
const open = new Set<string>();
beforeAll(async () => {
  let uploads = 0;
  const objects = {
    createUpload: () => {
      const id = `multipart ${++uploads}`;
      open.add(id);
      return Promise.resolve(id);
    },
    abort: ({ uploadId }: { uploadId: string }) => Promise.resolve(open.delete(uploadId)),
    presignPart: () => Promise.resolve('https://store.example.com/part'),
  };
  api = await createTestApi({ objects: objects as never, config: { UPLOAD_TOKEN_KEYS: keys } });
  me = await createTenant(api);
  await api.operator.addDomain({ projectId: me.projectId, hostname: domain, verified: true });
});
afterAll(() => api.close());

const token = (): string =>
  signUploadToken(
    {
      ...{ tokenId: randomSegment(), accountId: me.accountId, projectId: me.projectId, domain },
      ...{ maxSizeBytes: 1_000, contentType: null, title: null },
      expiresAt: new Date(api.now().getTime() + 3_600_000),
    },
    keys,
  );
const spend = (bearer: string, fileName: string): Promise<Answer<Upload>> =>
  api.ask<Upload>(`POST /v1/projects/${me.projectId}/uploads`, {
    bearer,
    body: { sizeBytes: 1_000, contentType: 'video/mp4', fileName },
    headers: { origin: `https://${domain}` },
  });

describe('one upload token at once, 200 times', () => {
  it('starts one upload, that of one body, and leaves no other behind [UPT-215, UPT-217, UPT-218]', async () => {
    for (let round = 0; round < raceRounds; round++) {
      const bearer = token();
      const answers = await Promise.all(['a.mp4', 'a.mp4', 'b.mp4'].map((name) => spend(bearer, name)));
      const started = answers.filter(({ status }) => status === 201);
      expect(new Set(started.map(({ body }) => body.id)).size).toBe(1);
      // Two of the one body, or one of the other.
      const codes = answers.map(({ status, problem }) => (status === 201 ? '201' : problem.code)).join(' ');
      expect(['201 201 unauthorized', 'unauthorized unauthorized 201']).toContain(codes);
    }
    const { rows } = await api.store.query<{ id: string }>('select store_upload_id as id from uploads');
    expect(rows).toHaveLength(raceRounds);
    expect([...open].sort()).toEqual(rows.map(({ id }) => id).sort());
    const { rows: videos } = await api.store.query('select count(*) as count from videos');
    expect(videos).toEqual([{ count: raceRounds }]);
  });
});
