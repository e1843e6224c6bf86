import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type WebhookDelivery, type WebhookEndpoint } from '@millrace/contract';
import { openWebhookSecret, parseKeySet } from '@millrace/domain';
import { claimDeliveries, fanOutEvent, finishAttempts, purgeWebhookLog } from '@millrace/store';
import { waitFor } from '@millrace/testing';
import { type Answer, createTenant, createTestApi, type Tenant, type TestApi } from '../testing/test-api.ts';

interface Page {
  data: WebhookDelivery[];
  nextCursor: string | null;
}

const keys = parseKeySet(`w1:${'w'.repeat(32)}`);
let api: TestApi;
let me: Tenant;

beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  me = await createTenant(api);
});

const path = (tenant = me): string => `/v1/projects/${tenant.projectId}/webhook-endpoints`;
const create = (body: object = {}, tenant = me): Promise<Answer<WebhookEndpoint>> =>
  api.ask<WebhookEndpoint>(`POST ${path(tenant)}`, {
    bearer: tenant.full,
    body: { url: 'https://hooks.example.com/in', events: ['video.ready', 'video.failed'], ...body },
  });
const ask = <Body>(request: string, tenant = me): Promise<Answer<Body>> => {
  const [method = '', rest = ''] = request.split(' ');
  return api.ask<Body>(`${method} ${path(tenant)}${rest}`, { bearer: tenant.full });
};
const log = async (endpointId: string, query = ''): Promise<Page> =>
  (await ask<Page>(`GET /${endpointId}/deliveries${query}`)).body;
const refusal = ({ status, problem }: Answer): [number, string] => [status, problem.code];

/** An event of the tenant's project, as a move of a video writes it. */
async function event(type = 'video.ready', tenant = me, created = 'clock_timestamp()'): Promise<string> {
  const id = `evt_${Math.random().toString(36).slice(2)}`;
  await api.store.query(
    `insert into events (id, type, account_id, project_id, body, created_at)
     values ($1, $2, $3, $4, $5, date_trunc('milliseconds', ${created}))`,
    [id, type, tenant.accountId, tenant.projectId, Buffer.from(`{"id":"${id}"}`)],
  );
  return id;
}
const fanOut = (eventId: string): Promise<number> => api.store.transaction((tx) => fanOutEvent(tx, eventId));

const worker = { name: 'test', boot: 'one' };
const claim = async () => {
  const request = { worker, leaseMs: 60_000, after: '', limit: 500, doubtfulLimit: 500 };
  return (await claimDeliveries(api.store, request)).deliveries;
};
type Claim = Awaited<ReturnType<typeof claim>>[number];
const end = (claims: readonly Claim[], status: 'delivered' | 'failed'): Promise<unknown> =>
  finishAttempts(
    api.store,
    claims.map((each) => ({
      ...{ claim: each, status, durationMs: 1, waitMs: null },
      ...{ lastStatus: status === 'delivered' ? 200 : 500, lastError: status === 'failed' ? 'no' : null },
    })),
  );
const mine = (claims: readonly Claim[], { id }: Pick<WebhookEndpoint, 'id'>): Claim[] =>
  claims.filter(({ endpointId }) => endpointId === id);

describe('creating a webhook endpoint', () => {
  it('answers it with its signing secret, which nothing shows again [WHE-001, WHE-201, WHE-208]', async () => {
    const { status, body } = await create();
    expect([status, { ...body, id: '', createdAt: '' }]).toEqual([
      201,
      {
        ...{ id: '', createdAt: '', url: 'https://hooks.example.com/in' },
        ...{ events: ['video.ready', 'video.failed'], signingSecret: body.signingSecret },
      },
    ]);
    expect(body.signingSecret).toMatch(/^whsec_[A-Za-z0-9_-]{43}$/);
    const list = await ask<{ data: WebhookEndpoint[] }>('GET ');
    const { signingSecret, ...shown } = body;
    expect(list.body.data).toEqual([shown]);
    const { rows } = await api.store.query<{ secret: string }>(
      'select secret from webhook_endpoints where id = $1',
      [body.id],
    );
    expect(rows[0]?.secret).not.toContain(signingSecret?.slice(6));
    expect(openWebhookSecret(rows[0]?.secret ?? '', body.id, keys)).toBe(signingSecret);
    expect(api.log.text()).not.toContain(signingSecret?.slice(6));
  });

  it.each<[string, object, string]>([
    ['no url', { url: undefined }, 'url'],
    ['a long url', { url: `https://hooks.example.com/${'🎬'.repeat(2_023)}` }, 'url'],
    ['no events', { events: [] }, 'events'],
    ['an unknown event', { events: ['video.ready', 'video.deleted'] }, 'events[1]'],
    ['an event twice', { events: ['video.ready', 'video.ready'] }, 'events'],
    ['an unknown field', { secret: 'mine' }, 'secret'],
  ])('with %s is 400 and names the field [WHE-203, WHE-207]', async (_what, body, at) => {
    const { status, problem } = await create(body);
    expect([status, problem.code, problem.errors?.[0]?.path]).toEqual([400, 'invalid_request', at]);
  });

  it.each([
    ...[
      'http://hooks.example.com/',
      'ftp://hooks.example.com/',
      'file:///etc/passwd',
      'gopher://hooks.example.com/',
    ],
    ...['//hooks.example.com/', 'hooks.example.com', 'https:///x', 'https://', 'javascript:alert(1)'],
    // Mapped into IPv6, and the other ways to carry an IPv4 address.
    ...['https://[::ffff:127.0.0.1]/', 'https://[::ffff:7f00:1]', 'https://[::ffff:169.254.169.254]'],
    ...[
      'https://[::ffff:10.0.0.1]',
      'https://[64:ff9b::a00:1]',
      'https://[2002:7f00:1::]',
      'https://[::]',
      'https://[::1]',
    ],
    // Spellings of loopback.
    ...[
      'https://2130706433',
      'https://017700000001',
      'https://0x7f000001',
      'https://0x7f.1',
      'https://127.1',
    ],
    ...[
      'https://0177.0.0.1',
      'https://0',
      'https://１２７.０.０.１/',
      'https://localhost',
      'HTTP://LOCALHOST',
    ],
    ...['https://localhost.', 'https://app.localhost/'],
    // Ranges that are not public.
    ...[
      'https://0.0.0.0',
      'https://100.64.0.1',
      'https://169.254.1.1',
      'https://192.0.0.8',
      'https://198.18.0.1',
    ],
    ...[
      'https://240.0.0.1',
      'https://255.255.255.255',
      'https://224.0.0.1',
      'https://10.1.2.3',
      'https://192.168.0.1',
    ],
    ...[
      'https://172.16.0.1',
      'https://192.0.2.1',
      'https://203.0.113.9',
      'https://[fc00::1]',
      'https://[fe80::1]',
    ],
    ...['https://[2001:db8::1]', 'https://[ff02::1]'],
    // User info, ports, white space.
    ...['https://ok.example@127.0.0.1/', 'https://127.0.0.1#@ok.example', 'https://user@hooks.example.com/'],
    ...[
      'https://user:pass@hooks.example.com/',
      'https://hooks.example.com:22/',
      'https://hooks.example.com:80/',
    ],
    ...[
      ' https://hooks.example.com/',
      'https://hooks.example.com/ ',
      'https://ho\toks.example.com/',
      'https:\\\\a.example',
    ],
    'https://hooks.example.com\n/',
  ])('at %j is 400 [WHE-203, WHE-205, WHE-220]', async (url) => {
    const { status, problem } = await create({ url });
    expect([status, problem.code, problem.errors?.[0]?.path]).toEqual([400, 'invalid_request', 'url']);
    expect((await ask<{ data: unknown[] }>('GET ')).body.data).toEqual([]);
  });

  it.each([
    ...['https://hooks.example.com:8443/a?b=c', 'https://8.8.8.8/', 'https://[2606:4700::1111]:443/'],
    ...['HTTPS://HOOKS.example.com', 'https://bücher.example/', 'https://no-such-name.example/'],
  ])('at %j is accepted, and kept as it was written [WHE-204, WHE-206]', async (url) => {
    const { status, body } = await create({ url });
    expect([status, body.url]).toEqual([201, url]);
  });

  it('may take 2,048 characters, whatever each needs in bytes [WHE-203]', async () => {
    expect((await create({ url: `https://hooks.example.com/${'🎬'.repeat(2_022)}` })).status).toBe(201);
  });

  it('leaves nothing of its URL in the log, which may hold a key of the customer’s', async () => {
    const statuses: number[] = [];
    for (const host of ['hooks.example.com', '10.0.0.1', 'hooks.example.com:22']) {
      statuses.push((await create({ url: `https://${host}/in?key=customers-own-key` })).status);
    }
    expect(statuses).toEqual([201, 400, 400]);
    expect(api.log.text()).toContain('webhook-endpoints');
    expect(api.log.text()).not.toContain('customers-own-key');
  });

  it('at a name that leads inside is 400 [WHE-221]', async () => {
    api.dns.set('inside.example.com', 'A', ['10.0.0.1']);
    api.dns.set('half.example.com', 'A', ['93.184.216.34', '127.0.0.1']);
    api.dns.set('public.example.com', 'A', ['93.184.216.34']);
    expect(refusal(await create({ url: 'https://inside.example.com/' }))).toEqual([400, 'invalid_request']);
    expect(refusal(await create({ url: 'https://half.example.com/' }))).toEqual([400, 'invalid_request']);
    expect((await create({ url: 'https://public.example.com/' })).status).toBe(201);
  });

  it('is refused from the sixth on, also at the same time, and possible again after a delete [WHE-202]', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => create()));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 201, 201, 201, 403, 403, 403]);
    expect(refusal(await create())).toEqual([403, 'endpoint_limit_reached']);
    const [one] = answers.filter(({ status }) => status === 201);
    expect((await ask(`DELETE /${one?.body.id ?? ''}`)).status).toBe(204);
    expect((await create()).status).toBe(201);
  });

  it('is possible on this machine where that is configured', async () => {
    const dev = await createTestApi({ config: { WEBHOOKS_ALLOW_LOOPBACK: true } });
    try {
      const tenant = await createTenant(dev);
      const at = (url: string): Promise<Answer> =>
        dev.ask(`POST ${path(tenant)}`, { bearer: tenant.full, body: { url, events: ['video.ready'] } });
      expect((await at('http://127.0.0.1:9000/in')).status).toBe(201);
      expect((await at('https://localhost:9000/in')).status).toBe(201);
      expect((await at('http://10.0.0.1:9000/in')).status).toBe(400);
      expect((await at('http://hooks.example.com/in')).status).toBe(201);
    } finally {
      await dev.close();
    }
  });
});

describe('webhook endpoints', () => {
  it('belong to their project [SVC-005]', async () => {
    const { body } = await create();
    const other = await createTenant(api);
    for (const request of [
      ...[`DELETE /${body.id}`, `POST /${body.id}/rotate-secret`, `GET /${body.id}/deliveries`],
      ...[`POST /${body.id}/test`, `POST /${body.id}/deliveries/del_1/redeliver`],
    ]) {
      expect([request, ...refusal(await ask(request, other))]).toEqual([request, 404, 'not_found']);
    }
    expect((await ask<{ data: unknown[] }>('GET ', other)).body.data).toEqual([]);
  });

  it('are for sessions too, and not for playback-only keys', async () => {
    const [session, playback] = await Promise.all([
      api.ask(`GET ${path()}`, { cookie: me.cookie }),
      api.ask(`GET ${path()}`, { bearer: me.playback }),
    ]);
    expect([session.status, ...refusal(playback)]).toEqual([200, 403, 'insufficient_scope']);
  });

  it('once deleted are gone, and what waited has failed [WHD-104, WHE-209]', async () => {
    const { body } = await create();
    await fanOut(await event());
    expect((await ask(`DELETE /${body.id}`)).status).toBe(204);
    expect(refusal(await ask(`DELETE /${body.id}`))).toEqual([404, 'not_found']);
    expect(refusal(await ask(`GET /${body.id}/deliveries`))).toEqual([404, 'not_found']);
    const { rows } = await api.store.query('select status from webhook_deliveries where endpoint_id = $1', [
      body.id,
    ]);
    expect(rows).toEqual([{ status: 'failed' }]);
    expect(mine(await claim(), body)).toEqual([]);
  });
});

describe('fan-out', () => {
  it('goes to the endpoints of the project that want the type, once however often it is told [EVT-010]', async () => {
    const { body: ready } = await create({ events: ['video.ready'] });
    const { body: held } = await create({ events: ['video.held'] });
    const other = await createTenant(api);
    const { body: foreign } = await create({ events: ['video.ready'] }, other);
    const eventId = await event();
    expect(await Promise.all([fanOut(eventId), fanOut(eventId)])).toEqual(expect.arrayContaining([1]));
    expect(await fanOut(eventId)).toBe(0);
    expect((await log(ready.id)).data.map((row) => row.eventId)).toEqual([eventId]);
    expect((await log(held.id)).data).toEqual([]);
    const { rows } = await api.store.query('select 1 from webhook_deliveries where endpoint_id = $1', [
      foreign.id,
    ]);
    expect(rows).toEqual([]);
  });

  it('is decided when the event is created, however late it is told [EVT-011]', async () => {
    const before = await event('video.ready', me, `clock_timestamp() - interval '1 second'`);
    const { body } = await create();
    expect(await fanOut(before)).toBe(0);
    expect((await log(body.id)).data).toEqual([]);
  });

  it('of an event that is unknown adds nothing', async () => {
    expect(await fanOut('evt_unknown')).toBe(0);
  });
});

describe('the delivery log', () => {
  it('says what is known of each delivery, newest first, page by page [WHE-214, WHD-001, WHD-002]', async () => {
    const { body } = await create();
    const events: string[] = [];
    for (let n = 0; n < 5; n++) {
      events.unshift(await event());
      await fanOut(events[0] ?? '');
    }
    const first = await log(body.id, '?limit=2');
    const second = await log(body.id, `?limit=2&cursor=${first.nextCursor ?? ''}`);
    const third = await log(body.id, `?limit=2&cursor=${second.nextCursor ?? ''}`);
    const pages = [first, second, third].map(({ data }) => data.map((row) => row.eventId));
    expect(pages).toEqual([events.slice(0, 2), events.slice(2, 4), events.slice(4)]);
    expect(third.nextCursor).toBeNull();
    expect(first.data[0]).toMatchObject({
      ...{ eventType: 'video.ready', status: 'pending', attempts: 0, lastStatus: null },
      ...{ lastAttemptAt: null, lastError: null, redeliveryOf: null },
    });
    expect(first.data[0]?.nextAttemptAt).toMatch(/Z$/);
    expect(Object.keys(first.data[0] ?? {}).sort()).toEqual(
      [
        ...['id', 'eventId', 'eventType', 'createdAt', 'status', 'attempts', 'lastStatus', 'lastAttemptAt'],
        ...['nextAttemptAt', 'lastError', 'redeliveryOf'],
      ].sort(),
    );
  });

  it.each(['?limit=0', '?limit=101', '?limit=x', '?cursor=forged'])('refuses %s', async (query) => {
    const { body } = await create();
    expect(refusal(await ask(`GET /${body.id}/deliveries${query}`))).toEqual([400, 'invalid_request']);
  });

  it('refuses the cursor of another endpoint [PAG-006]', async () => {
    const [{ body: one }, { body: two }] = [await create(), await create()];
    for (let n = 0; n < 2; n++) await fanOut(await event());
    const { nextCursor } = await log(one.id, '?limit=1');
    expect(refusal(await ask(`GET /${two.id}/deliveries?cursor=${nextCursor ?? ''}`))).toEqual([
      400,
      'invalid_request',
    ]);
  });
});

describe('a test event', () => {
  it('is queued for one endpoint, whatever that subscribes to [WHE-212, WHE-213, EVT-005]', async () => {
    const [{ body: one }, { body: two }] = [
      await create({ events: ['video.held'] }),
      await create({ events: ['webhook.test'] }),
    ];
    const { status, body } = await ask<WebhookDelivery>(`POST /${one.id}/test`);
    expect([status, body.eventType, body.status]).toEqual([202, 'webhook.test', 'pending']);
    expect((await log(one.id)).data).toEqual([body]);
    expect((await log(two.id)).data).toEqual([]);
    const [claimed] = mine(await claim(), one);
    expect(JSON.parse(claimed?.body ?? '')).toEqual({
      ...{ id: body.eventId, type: 'webhook.test', projectId: me.projectId },
      createdAt: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/) as unknown,
      data: { test: true },
    });
  });
});

describe('redelivering', () => {
  const deliver = async (endpoint: WebhookEndpoint): Promise<WebhookDelivery> =>
    (await ask<WebhookDelivery>(`POST /${endpoint.id}/test`)).body;
  const again = (
    endpoint: WebhookEndpoint,
    { id }: Pick<WebhookDelivery, 'id'>,
  ): Promise<Answer<WebhookDelivery>> =>
    ask<WebhookDelivery>(`POST /${endpoint.id}/deliveries/${id}/redeliver`);

  it.each(['delivered', 'failed'] as const)(
    'one that has %s makes a new one of the same event [WHE-216, WHE-217]',
    async (status) => {
      const { body: endpoint } = await create();
      const first = await deliver(endpoint);
      const [before] = mine(await claim(), endpoint);
      await end(before === undefined ? [] : [before], status);
      const { status: code, body } = await again(endpoint, first);
      expect([code, body.status, body.attempts, body.redeliveryOf, body.eventId]).toEqual([
        ...[202, 'pending', 0, first.id, first.eventId],
      ]);
      expect(body.id).not.toBe(first.id);
      const [after] = mine(await claim(), endpoint);
      expect([after?.deliveryId, after?.redelivery, after?.body === before?.body]).toEqual([
        ...[body.id, true, true],
      ]);
    },
  );

  it('one that waits makes it due now [WHE-218]', async () => {
    const { body: endpoint } = await create();
    const first = await deliver(endpoint);
    await api.store.query(
      `with later as (update webhook_queue set due_at = due_at + interval '1 hour' where delivery_id = $1)
       update webhook_deliveries set next_attempt_at = next_attempt_at + interval '1 hour' where id = $1`,
      [first.id],
    );
    expect(mine(await claim(), endpoint)).toEqual([]);
    const { status, body } = await again(endpoint, first);
    expect([status, body.id, body.redeliveryOf]).toEqual([202, first.id, null]);
    expect(mine(await claim(), endpoint).map(({ deliveryId }) => deliveryId)).toEqual([first.id]);
  });

  it('one in flight is 409 [WHE-219]', async () => {
    const { body: endpoint } = await create();
    const first = await deliver(endpoint);
    expect(mine(await claim(), endpoint)).toHaveLength(1);
    expect(refusal(await again(endpoint, first))).toEqual([409, 'delivery_in_progress']);
  });

  it('one that is unknown or of another endpoint is 404', async () => {
    const [{ body: one }, { body: two }] = [await create(), await create()];
    const delivery = await deliver(one);
    expect(refusal(await again(two, delivery))).toEqual([404, 'not_found']);
    expect(refusal(await again(one, { id: 'del_unknown' }))).toEqual([404, 'not_found']);
  });
});

describe('rotating a signing secret', () => {
  it('answers a new one, which waiting deliveries have at once [WHE-210, WHE-211, WHE-003]', async () => {
    const { body: endpoint } = await create();
    await ask(`POST /${endpoint.id}/test`);
    const { status, body } = await ask<WebhookEndpoint>(`POST /${endpoint.id}/rotate-secret`);
    expect(status).toBe(200);
    expect({ ...body, signingSecret: endpoint.signingSecret }).toEqual(endpoint);
    expect(body.signingSecret).not.toBe(endpoint.signingSecret);
    const [claimed] = mine(await claim(), endpoint);
    expect(openWebhookSecret(claimed?.secret ?? '', endpoint.id, keys)).toBe(body.signingSecret);
  });

  it('returns when attempts that were begun before have ended, and waits for no others [WHE-211]', async () => {
    const { body: endpoint } = await create();
    await ask(`POST /${endpoint.id}/test`);
    const old = mine(await claim(), endpoint);
    expect(old).toHaveLength(1);
    const done = { rotated: false };
    const rotation = ask<WebhookEndpoint>(`POST /${endpoint.id}/rotate-secret`).then((answer) => {
      done.rotated = true;
      return answer;
    });
    // The new secret holds already, for whatever is claimed from now on.
    const secret = async (): Promise<string> => {
      const { rows } = await api.store.query<{ secret: string }>(
        'select secret from webhook_endpoints where id = $1',
        [endpoint.id],
      );
      return openWebhookSecret(rows[0]?.secret ?? '', endpoint.id, keys);
    };
    await waitFor(async () => (await secret()) !== endpoint.signingSecret);
    await ask(`POST /${endpoint.id}/test`);
    expect(done.rotated).toBe(false);
    await end(old, 'delivered');
    expect((await rotation).body.signingSecret).toBe(await secret());
  });
});

describe('the log and the bodies of events', () => {
  it('are kept for 30 days, and longer while something waits [WHE-215]', async () => {
    const { body: endpoint } = await create();
    const age = async (eventId: string, interval: string): Promise<void> => {
      await api.store.query(
        `update webhook_deliveries set created_at = clock_timestamp() - $2::interval where event_id = $1`,
        [eventId, interval],
      );
    };
    // Events never change: an old one must be born old.
    const old = `clock_timestamp() - interval '30 days 1 minute'`;
    await api.store.query(`update webhook_endpoints set created_at = created_at - interval '40 days'`);
    const over = await event('video.ready', me, old);
    const waiting = await event('video.ready', me, old);
    const young = await event('video.ready', me, old);
    const nobodys = await event('video.held', me, old);
    for (const eventId of [over, waiting, young]) await fanOut(eventId);
    const claims = mine(await claim(), endpoint).filter(({ eventId }) => eventId !== waiting);
    await end(claims, 'delivered');
    await api.store.query(
      `update webhook_deliveries set status = 'failed', next_attempt_at = null where event_id = any ($1)`,
      [[over, young]],
    );
    await age(over, '30 days 1 minute');
    await age(waiting, '30 days 1 minute');
    await age(young, '29 days 23 hours');
    await purgeWebhookLog(api.store, new AbortController().signal, 1);
    const { rows } = await api.store.query<{ id: string }>('select id from events where id = any ($1)', [
      [over, waiting, young, nobodys],
    ]);
    expect(rows.map(({ id }) => id).sort()).toEqual([waiting, young].sort());
    expect((await log(endpoint.id)).data.map(({ eventId }) => eventId).sort()).toEqual(
      [waiting, young].sort(),
    );
  });
});
