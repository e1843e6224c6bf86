import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type EventType,
  type Video,
  videoEvent,
  type VideoEvent,
  type WebhookEndpoint,
} from '@millrace/contract';
import { openWebhookSecret, signWebhook, webhookKey } from '@millrace/domain';
import { claimDeliveries, type Database, fanOutEvent, finishAttempts, moveVideo } from '@millrace/store';
import { failEncode, finishEncode, seedVideo } from '../testing/seed-video.ts';
import { adminToken, createTenant, createTestApi, type Tenant, type TestApi } from '../testing/test-api.ts';

let api: TestApi;
let me: Tenant;

beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  me = await createTenant(api);
});

const path = (): string => `/v1/projects/${me.projectId}`;
const getVideo = async (videoId: string): Promise<Video> =>
  (await api.ask<Video>(`GET ${path()}/videos/${videoId}`, { bearer: me.full })).body;
const admin = async (request: string, body?: object): Promise<void> => {
  const [method = '', rest = ''] = request.split(' ');
  const { status } = await api.ask(`${method} internal:/admin/videos/${rest}`, {
    bearer: adminToken,
    ...(body === undefined ? {} : { body }),
  });
  expect(status).toBeLessThan(300);
};
const createEndpoint = async (events: EventType[] = ['video.ready']): Promise<WebhookEndpoint> => {
  const body = { url: 'https://hooks.example.com/in', events };
  return (await api.ask<WebhookEndpoint>(`POST ${path()}/webhook-endpoints`, { bearer: me.full, body })).body;
};

interface StoredEvent extends VideoEvent {
  raw: Buffer;
}
/** The bodies of a video's events as they are sent, oldest first. */
async function events(videoId: string): Promise<StoredEvent[]> {
  const { rows } = await api.store.query<{ body: Buffer }>(
    'select body from events where video_id = $1 order by created_at, id',
    [videoId],
  );
  return rows.map(({ body }) => ({
    ...videoEvent.strict().parse(JSON.parse(body.toString('utf8'))),
    raw: body,
  }));
}
/** Event ids that the outbox tells the webhooks service of, oldest first. */
async function toldOf(videoId: string): Promise<string[]> {
  const { rows } = await api.store.query<{ eventId: string }>(
    `select value ->> 'eventId' as "eventId" from outbox
     where topic = 'millrace.video.events' and key = $1 order by id`,
    [videoId],
  );
  return rows.map(({ eventId }) => eventId);
}
const last = <T>(list: readonly T[]): T => {
  const item = list.at(-1);
  if (item === undefined) throw new Error('the list is empty');
  return item;
};

type Act = (videoId: string) => Promise<unknown>;
const whileUploading: Act = (videoId) =>
  api.store.transaction((tx) =>
    moveVideo(tx, videoId, {
      type: 'complete_rejected',
      failure: { code: 'plan_limit_reached', message: 'The file is too large.' },
    }),
  );

describe('an event about a video', () => {
  it.each<[EventType, string, Parameters<typeof seedVideo>[2], Act, string | undefined]>([
    [
      'video.ready',
      'encoding has ended',
      { status: 'processing' },
      (id) => finishEncode(api.store, id),
      undefined,
    ],
    [
      'video.failed',
      'encoding failed',
      { status: 'processing' },
      (id) => failEncode(api.store, id),
      undefined,
    ],
    ['video.failed', 'the complete call failed', { status: 'uploading' }, whileUploading, undefined],
    [
      'video.held',
      'the team held it',
      {},
      (id) => admin(`POST ${id}/hold`, { reason: 'Why "é"' }),
      'Why "é"',
    ],
    ['video.held', 'it was held without a reason', {}, (id) => admin(`POST ${id}/hold`, {}), undefined],
  ])(
    '%s carries the video as its GET answers when %s [EVT-006, EVT-007, EVT-009]',
    async (type, _when, seed, act, reason) => {
      const videoId = await seedVideo(api.store, me, seed);
      await act(videoId);
      const { raw, ...event } = last(await events(videoId));
      const video = await getVideo(videoId);
      expect(event).toEqual({
        id: expect.stringMatching(/^evt_[0-9A-Za-z]{22}$/) as unknown,
        type,
        createdAt: video.updatedAt,
        projectId: me.projectId,
        data: reason === undefined ? { video } : { video, reason },
      });
      // To the byte: every field is there, those without a value as null.
      expect(JSON.stringify((JSON.parse(raw.toString('utf8')) as StoredEvent).data.video)).toBe(
        JSON.stringify(video),
      );
      expect(last(await toldOf(videoId))).toBe(event.id);
    },
  );

  it('video.failed says why [EVT-002]', async () => {
    const videoId = await seedVideo(api.store, me, { status: 'uploading' });
    await whileUploading(videoId);
    const { type, data } = last(await events(videoId));
    expect([type, data.video.failure]).toEqual([
      'video.failed',
      { code: 'plan_limit_reached', message: 'The file is too large.' },
    ]);
  });

  it('video.ready is sent again when a hold ends, newer than before [EVT-001]', async () => {
    const videoId = await seedVideo(api.store, me);
    await admin(`POST ${videoId}/hold`, {});
    await admin(`DELETE ${videoId}/hold`);
    const sent = await events(videoId);
    expect(sent.map(({ type }) => type)).toEqual(['video.ready', 'video.held', 'video.ready']);
    const instants = sent.map(({ data }) => data.video.updatedAt);
    expect(instants).toEqual([...new Set(instants)].toSorted());
    expect(last(sent).data.video).toEqual(await getVideo(videoId));
    expect(await toldOf(videoId)).toEqual(sent.map(({ id }) => id));
  });

  it('video.removed carries the video as it was, and the reason [EVT-004, EVT-008]', async () => {
    const [videoId, other] = [await seedVideo(api.store, me), await seedVideo(api.store, me)];
    const before = await getVideo(videoId);
    await admin(`DELETE ${videoId}?reason=Copyright`);
    await admin(`DELETE ${other}`);
    const { type, data } = last(await events(videoId));
    expect([type, data.reason]).toEqual(['video.removed', 'Copyright']);
    expect({ ...data.video, updatedAt: '' }).toEqual({ ...before, updatedAt: '' });
    expect(data.video.updatedAt > before.updatedAt).toBe(true);
    expect(last(await events(other)).data).not.toHaveProperty('reason');
  });

  it('is not sent for a legal matter, nor for what the customer does [EVT-003, EVT-004, VID-116]', async () => {
    const [held, removed, deleted] = [
      await seedVideo(api.store, me),
      await seedVideo(api.store, me),
      await seedVideo(api.store, me),
    ];
    await admin(`POST ${held}/hold`, { reason: 'Court order', legal: true });
    await admin(`DELETE ${removed}?legal=true&reason=Court`);
    await api.ask(`DELETE ${path()}/videos/${deleted}`, { bearer: me.full });
    for (const videoId of [held, removed, deleted]) {
      expect((await events(videoId)).map(({ type }) => type)).toEqual(['video.ready']);
      expect(await toldOf(videoId)).toHaveLength(1);
    }
  });
});

const worker = { name: 'test', boot: 'one' };
const claim = async (store: Database) =>
  (await claimDeliveries(store, { worker, leaseMs: 60_000, after: '', limit: 500, doubtfulLimit: 500 }))
    .deliveries;

describe('what is sent of an event', () => {
  it.each(['a / "b" \\', 'é 日本 🎬 ‮', '</script>\u2028'])(
    'is the same bytes on every try, which anybody can verify, of the title %j [SIG-002, SIG-003, WHD-403]',
    async (title) => {
      const endpoint = await createEndpoint();
      const videoId = await seedVideo(api.store, me, { title });
      const { id, raw, data } = last(await events(videoId));
      expect(data.video.title).toBe(title);
      expect(await api.store.transaction((tx) => fanOutEvent(tx, id))).toBe(1);
      const signatures = new Set<string>();
      for (const attempts of [0, 1, 2]) {
        const [claimed] = (await claim(api.store)).filter(({ endpointId }) => endpointId === endpoint.id);
        if (claimed === undefined) throw new Error('nothing was claimed');
        const sent = Buffer.from(claimed.body);
        expect([claimed.attempts, sent.equals(raw)]).toEqual([attempts, true]);
        const secret = openWebhookSecret(claimed.secret, endpoint.id, api.deps.config.WEBHOOK_SECRET_KEYS);
        expect(secret).toBe(endpoint.signingSecret);
        const t = 1_700_000_000 + attempts;
        const signature = signWebhook(webhookKey(secret), sent, t);
        expect(signature).toBe(`t=${t},v1=${openssl(secret, Buffer.concat([Buffer.from(`${t}.`), raw]))}`);
        signatures.add(signature);
        const failed = {
          status: 'pending',
          waitMs: 0,
          durationMs: 1,
          lastStatus: 500,
          lastError: 'no',
        } as const;
        await finishAttempts(api.store, [{ claim: claimed, ...failed }]);
      }
      expect(signatures.size).toBe(3);
    },
  );

  it('cannot be changed', async () => {
    const videoId = await seedVideo(api.store, me);
    await expect(
      api.store.query(`update events set body = '' where video_id = $1`, [videoId]),
    ).rejects.toThrow('never changed');
  });
});

/** What a receiver in any other language computes. */
function openssl(secret: string, bytes: Buffer): string {
  const out = execFileSync('openssl', ['dgst', '-sha256', '-hmac', secret, '-r'], { input: bytes });
  return out.toString('utf8').slice(0, 64);
}

describe('who gets an event', () => {
  const fanOut = async (videoId: string): Promise<number> => {
    const { id } = last(await events(videoId));
    return api.store.transaction((tx) => fanOutEvent(tx, id));
  };

  it('was decided when it was created, however late it is fanned out [EVT-010, EVT-011]', async () => {
    const before = await createEndpoint();
    await createEndpoint(['video.held']);
    const videoId = await seedVideo(api.store, me);
    await createEndpoint();
    expect(await fanOut(videoId)).toBe(1);
    const { rows } = await api.store.query(
      `select d.endpoint_id as id from webhook_deliveries d join events e on e.id = d.event_id where e.video_id = $1`,
      [videoId],
    );
    expect(rows).toEqual([{ id: before.id }]);
  });

  it('does not depend on clocks: the record may be set back after an endpoint was added', async () => {
    const { id } = await createEndpoint();
    await api.store.query(
      `update webhook_endpoints set created_at = created_at + interval '1 hour' where id = $1`,
      [id],
    );
    expect(await fanOut(await seedVideo(api.store, me))).toBe(1);
  });

  it('leaves out an endpoint that was deleted before the fan-out [WHE-209]', async () => {
    const { id } = await createEndpoint();
    const videoId = await seedVideo(api.store, me);
    await api.ask(`DELETE ${path()}/webhook-endpoints/${id}`, { bearer: me.full });
    expect(await fanOut(videoId)).toBe(0);
  });
});
