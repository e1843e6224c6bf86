import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type Account, type Upload, type User } from '@millrace/contract';
import { createTestObjects, type TestObjects } from '@millrace/testing';
import { seedVideo } from './testing/seed-video.ts';
import {
  adminToken,
  type Answer,
  createTenant,
  createTestApi,
  type Tenant,
  type TestApi,
} from './testing/test-api.ts';

type Fields = Record<string, unknown>;

let objects: TestObjects;
let api: TestApi;
let me: Tenant;
beforeAll(async () => {
  objects = await createTestObjects();
  api = await createTestApi({ objects: objects.objects, config: { SMS_PROVIDER: 'log' } });
});
afterAll(async () => {
  await api.close();
  await objects.close();
});
beforeEach(async () => {
  me = await createTenant(api);
});

const ask = async <Body = Fields>(request: string, body?: unknown, at = api): Promise<Body> => {
  const [method = '', path = ''] = request.split(' ');
  const answer: Answer<Body> = await at.ask<Body>(
    `${method} ${path.replace('…', `/v1/projects/${me.projectId}`)}`,
    { cookie: me.cookie, ...(body === undefined ? {} : { body }) },
  );
  return answer.body;
};
const hold = (videoId: string, body: Fields): Promise<Answer> =>
  api.ask(`POST internal:/admin/videos/${videoId}/hold`, { bearer: adminToken, body });
const endpoint = { url: 'https://hooks.example.com/in', events: ['video.held'] };
const idOf = async (table: string, videoId: string): Promise<string> => {
  const { rows } = await api.store.query<{ id: string }>(`select id from ${table} where video_id = $1`, [
    videoId,
  ]);
  return rows[0]?.id ?? '';
};

describe('ids', () => {
  it('say by their prefix what they name [CNV-002]', async () => {
    const { user, account } = await ask<{ user: User; account: Account }>('GET /v1/me');
    const upload = await ask<Upload>('POST …/uploads', { sizeBytes: 1, contentType: 'video/mp4' });
    const { id: endpointId } = await ask<{ id: string }>('POST …/webhook-endpoints', endpoint);
    await ask(`POST …/webhook-endpoints/${endpointId}/test`);
    const { data: deliveries } = await ask<{ data: Fields[] }>(
      `GET …/webhook-endpoints/${endpointId}/deliveries`,
    );
    const ready = await seedVideo(api.store, me);
    await hold(ready, {});
    const encoding = await seedVideo(api.store, me, { status: 'processing' });
    const made = {
      acc: account.id,
      usr: user.id,
      prj: (await ask('GET …'))['id'],
      vid: upload.video.id,
      upl: upload.id,
      key: (await ask('POST …/api-keys', { name: 'One' }))['id'],
      dom: (await ask('POST …/domains', { hostname: 'ids.example.com' }))['id'],
      whe: endpointId,
      evt: deliveries[0]?.['eventId'],
      phc: (await ask('POST /v1/me/phone/start', { phone: '+966501234567' }))['challengeId'],
      del: deliveries[0]?.['id'],
      rep: (await ask(`POST …/videos/${ready}/reports`, { reason: 'Spam' }))['id'],
      hld: await idOf('video_holds', ready),
      job: await idOf('encode_jobs', encoding),
      tsk: await idOf('encode_tasks', encoding),
    };
    for (const [prefix, id] of Object.entries(made)) {
      expect(id).toMatch(new RegExp(`^${prefix}_[A-Za-z0-9]{22}$`));
    }
    expect(me.cookie).toMatch(/^ses_[A-Za-z0-9]{43}$/);
  });
});

describe('what there is nothing to say of', () => {
  /** The value of a field in two answers, one that has it and one that has not even its name. */
  const expectLeftOut = (name: string, having: Fields, without: Fields): void => {
    expect([name, typeof having[name]]).toEqual([name, 'string']);
    expect(Object.keys(without)).not.toContain(name);
  };

  it('is left out of tokens and secrets [CNV-006]', async () => {
    const domain = `${me.projectId.slice(4).toLowerCase()}.example.com`;
    await api.operator.addDomain({ projectId: me.projectId, hostname: domain, verified: true });
    const token = (title?: string): Promise<Fields> => ask('POST …/upload-tokens', { domain, title });
    expectLeftOut('title', await token('Mine'), await token());

    const videoId = await seedVideo(api.store, me);
    const play = (): Promise<Fields> => ask(`POST …/videos/${videoId}/playback-tokens`, { domain });
    const onAgency = await play();
    await api.operator.setPlan({ accountId: me.accountId, planId: 'free' });
    expectLeftOut('playlistUrl', onAgency, await play());

    const first = async (list: string): Promise<Fields> =>
      (await ask<{ data: Fields[] }>(`GET …/${list}`)).data[0] ?? {};
    expectLeftOut('value', await ask('POST …/api-keys', { name: 'One' }), await first('api-keys'));
    expectLeftOut(
      'signingSecret',
      await ask('POST …/webhook-endpoints', endpoint),
      await first('webhook-endpoints'),
    );
  });

  it('is left out of events and problems [CNV-006]', async () => {
    const dataOf = async (body: Fields): Promise<Fields> => {
      const videoId = await seedVideo(api.store, me);
      await hold(videoId, body);
      const { rows } = await api.store.query<{ body: Buffer }>(
        `select body from events where video_id = $1 and type = 'video.held'`,
        [videoId],
      );
      return (JSON.parse(rows[0]?.body.toString('utf8') ?? '{}') as { data: Fields }).data;
    };
    expectLeftOut('reason', await dataOf({ reason: 'Team' }), await dataOf({}));
    expectLeftOut('detail', await ask('POST …/api-keys', {}), await ask('GET …/videos/vid_unknown'));
  });
});
