import { readFile, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import axe, { type AxeResults } from 'axe-core';
import { waitFor } from '@millrace/testing';
import { type Page } from 'playwright-core';
import { type Receiver, startReceiver } from '../demo/receiver.ts';
import { type Clerk, createClerk } from './console/clerk.ts';
import { signInElsewhere } from './console/elsewhere.ts';
import { api, dashboard, type Office, openOffice, sibling, stranger } from './console/office.ts';
import { steps, type World } from './console/steps.ts';
import { keyCaller, operationsFor, walk } from './console/walk.ts';

jest.setTimeout(360_000);
const sample = fileURLToPath(new URL('../../media/sample.mp4', import.meta.url));

let office: Office;
let receiver: Receiver;
beforeAll(async () => {
  [office, receiver] = await Promise.all([openOffice(), startReceiver()]);
});
afterAll(async () => {
  await receiver.stop();
  await office.close();
});

let clerk: Clerk;
let people = 0;
const newcomer = (): string => `person-${++people}@example.com`;
beforeEach(async () => {
  for (const page of office.context.pages()) await page.close();
  await office.context.clearCookies();
  clerk = createClerk(await office.context.newPage());
  await clerk.come();
});

const newWorld = async (putParts: World['putParts']): Promise<World> => ({
  ids: {},
  hostname: `walk-${++people}.example.com`,
  receiver,
  fileSize: (await stat(sample)).size,
  putParts,
  addTxt: (name, value) => office.stack.millrace('dev', 'txt', name, value),
  found: {},
});

describe('the development console on a dashboard host', () => {
  it('has a step for every route that takes a session', () => {
    const walked = [...new Set(steps.map(({ id }) => id))];
    expect(walked.sort()).toEqual(operationsFor('session').sort());
  });

  it('signs in at the development provider, and walks every route that takes a session [RUN-010, AUT-006, ACC-201]', async () => {
    const email = newcomer();
    await clerk.signIn('google', email);
    expect(await clerk.who()).toMatch(new RegExp(`^Signed in as ${email}, account acc_\\w+ on free\\.$`));
    const world = await newWorld(() => clerk.putParts(sample));
    await walk(steps, world, async (id, input) => {
      const answered = await clerk.send(id, input);
      if (id === 'createPreviewToken') await playPreview(clerk.page);
      return answered;
    });
    expect(await clerk.who()).toBe('Not signed in (401).');
  });

  it('asks whom to be at each sign-in; cancelling there is told on a page [SSO-204]', async () => {
    const [first, second] = [newcomer(), newcomer()];
    await clerk.signIn('google', first);
    await signOut();
    await clerk.signIn('microsoft', second);
    expect(await clerk.who()).toContain(second);
    await signOut();
    await clerk.page.getByRole('link', { name: 'Sign in as by google' }).click();
    await clerk.page.getByRole('button', { name: 'Cancel' }).click();
    expect(await clerk.page.locator('main').innerText()).toContain('auth_denied');
  });

  it('is three files that run nothing of others, and no other path', async () => {
    for (const path of ['', '/', '/console.js', '/console.css']) {
      const { status, headers } = await fetch(`${office.apiAddress}/dev${path}`);
      expect([path, status]).toEqual([path, 200]);
      expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self';/);
      expect(headers.get('content-security-policy')).toMatch(/frame-ancestors 'none'$/);
    }
    for (const path of ['/constructor', '/console.ts', '/..%2fv1', '/dev/', '/console.js/'])
      expect([path, (await fetch(`${office.apiAddress}/dev${path}`)).status]).toEqual([path, 404]);
    expect((await fetch(`${office.apiAddress}/dev/`, { method: 'POST' })).status).toBe(404);
  });

  it('has no violation of accessibility, nor has the provider’s form', async () => {
    const { page } = clerk;
    expect(await violations(page)).toEqual([]);
    await page.getByRole('link', { name: 'Sign in as by google' }).click();
    await page.getByRole('heading', { name: 'Sign in for development' }).waitFor();
    expect(await violations(page)).toEqual([]);
    await clerk.come();
    await clerk.signIn('google', newcomer());
    await clerk.send('createProject', { body: { name: 'Site' } });
    await clerk.send('startUpload', {});
    expect(await violations(page)).toEqual([]);
  });
});

describe('the session in a browser', () => {
  it('is a cookie of the API’s host that no script reads, and sign-in leaves nothing else [SES-001, SSO-208]', async () => {
    await clerk.signIn('google', newcomer());
    const cookies = await office.context.cookies(`${api}/auth/google/callback`);
    const guarded = { domain: 'api.example.net', path: '/', httpOnly: true, secure: true, sameSite: 'Lax' };
    expect(
      cookies.map(({ name, domain, path, httpOnly, secure, sameSite }) => ({
        name,
        domain,
        path,
        httpOnly,
        secure,
        sameSite,
      })),
    ).toEqual(['svc_session', 'svc_device'].map((name) => ({ name, ...guarded })));
    expect(await office.context.cookies(dashboard)).toEqual([]);
    await clerk.page.goto(`${api}/docs`);
    expect(await clerk.page.evaluate('document.cookie')).toBe('');
  });

  it('ends with sign-out, there and for whoever kept it [SSO-215]', async () => {
    await clerk.signIn('google', newcomer());
    const kept = (await office.context.cookies(api)).filter(({ name }) => name === 'svc_session');
    await signOut();
    expect((await office.context.cookies(api)).map(({ name }) => name)).toEqual(['svc_device']);
    await office.context.addCookies(kept);
    await clerk.come();
    expect(await clerk.who()).toBe('Not signed in (401).');
  });
});

/** Another site’s page, in a browser that is signed in. */
describe.each([
  ['a site beside the dashboard, whose requests carry the session', sibling],
  ['another site', stranger],
])('%s', (_what, origin) => {
  beforeEach(async () => {
    await clerk.signIn('google', newcomer());
    await clerk.page.goto(`${origin}/`);
    office.front.seen.length = 0;
  });
  afterEach(async () => {
    // Nothing that was tried has come to anything.
    await clerk.come();
    expect(await clerk.who()).toMatch(/^Signed in as/);
    expect((await clerk.send('listProjects', {})).body).toEqual({ data: [], nextCursor: null });
  });

  it('reads nothing of the person’s, and cannot ask to change anything [CRS-005]', async () => {
    expect(await tryToRead(`${api}/v1/me`)).toBe('TypeError');
    expect(await tryToRead(`${api}/v1/projects`, { method: 'POST', body: '{"name":"x"}' })).toBe('TypeError');
    const preflight = { path: '/v1/projects', status: 204 };
    expect(office.front.seen.filter(({ path }) => path === '/v1/projects')).toMatchObject([preflight]);
  });

  it.each([
    ['/v1/projects', '{"name":"x","'],
    ['/auth/logout', ''],
  ])('changes nothing at %s by a form, whatever its type [SES-005]', async (path, body) => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      await postForm(`${api}${path}`, type, body);
      expect(await clerk.page.locator('body').innerText()).toContain('"unauthorized"');
      await clerk.page.goto(`${origin}/`);
    }
    expect(await sendBlindly(`${api}${path}`, body)).toBe('sent');
    const statuses = office.front.seen.filter((seen) => seen.path === path).map(({ status }) => status);
    expect(statuses).toEqual([401, 401, 401, 401]);
  });

  it('reads what the demo route answers, without the session [CRS-006]', async () => {
    expect(await tryToRead(`${api}/v1/demo/playback`, { credentials: 'omit' })).toBe('503');
    expect(await tryToRead(`${api}/v1/demo/playback`)).toBe('TypeError');
  });
});

/** Cookies of a host are its neighbours’ to set, by the domain that they share. */
describe('a site beside the API that plants cookies', () => {
  const plant = (cookies: readonly string[]): Promise<unknown> =>
    clerk.page.evaluate(`for (const line of ${JSON.stringify(cookies)}) document.cookie = line`);

  it('does not sign a person in as somebody else with a sign-in that it began [SSO-203, SSO-218]', async () => {
    const { callback, cookies } = await signInElsewhere(office.apiAddress, newcomer());
    expect(cookies).toHaveLength(1);
    await clerk.page.goto(sibling);
    await plant(
      cookies.flatMap((cookie) =>
        ['/', '/auth/'].flatMap((path) => [
          `${cookie}; Secure; Path=${path}; Domain=example.net`,
          `${cookie.replace('__Host-', '')}; Secure; Path=${path}; Domain=example.net`,
        ]),
      ),
    );
    await clerk.page.goto(callback);
    expect(await clerk.page.locator('body').innerText()).toContain('invalid_state');
    await clerk.come();
    expect(await clerk.who()).toBe('Not signed in (401).');
  });

  it('does not put its session in the place of a person’s [SES-009]', async () => {
    await clerk.signIn('google', newcomer());
    const [own] = (await office.context.cookies(api)).filter(({ name }) => name === 'svc_session');
    await office.context.clearCookies();
    await clerk.come();
    await clerk.signIn('google', newcomer());
    await clerk.page.goto(sibling);
    await plant([`svc_session=${own?.value ?? ''}; Secure; Path=/v1; Domain=example.net`]);
    await clerk.come();
    expect(await clerk.who()).toBe('Not signed in (401).');
  });
});

describe('a full-scope key', () => {
  it('walks every route that takes a key, and none that takes a session only [AUT-003, AUT-007]', async () => {
    const { millrace } = office.stack;
    const made = (await millrace('account', 'create', '--name', 'A', '--email', newcomer())) as {
      account: { id: string };
    };
    const project = (await millrace('project', 'create', '--account', made.account.id, '--name', 'P')) as {
      id: string;
    };
    const key = (await millrace('key', 'create', '--project', project.id)) as { id: string; value: string };
    const world = await newWorld(putDirectly);
    Object.assign(world.ids, { projectId: project.id, keyId: key.id, provider: 'x' });
    const send = keyCaller(office.apiAddress, key.value, world);
    const open = new Set(operationsFor('key'));
    const walked = steps.filter(({ id }) => open.has(id));
    expect(new Set(walked.map(({ id }) => id))).toEqual(open);
    await walk(walked, world, send);
    const closed = operationsFor('session').filter((id) => !open.has(id));
    expect(closed).toEqual(
      expect.arrayContaining(['getMe', 'createProject', 'listApiKeys', 'checkout', 'signOut']),
    );
    for (const id of closed)
      expect([id, await send(id, {})]).toMatchObject([id, { status: 401, body: { code: 'unauthorized' } }]);
  });
});

/** Plays what the console frames. */
async function playPreview(page: Page): Promise<void> {
  await page.frameLocator('iframe').locator('button.large').click();
  const time = async (): Promise<number> =>
    (await page.frames()[1]?.evaluate<number>("document.getElementById('video').currentTime")) ?? 0;
  await waitFor(async () => (await time()) > 0.1, { timeoutMs: 60_000, what: 'the preview to play' });
}

const signOut = async (): Promise<void> => {
  await clerk.page.getByRole('button', { name: 'Sign out' }).click();
  await clerk.page.getByText('Not signed in (401).').waitFor();
};

/** What axe finds wrong with a page, best practices included. */
async function violations(page: Page): Promise<string[]> {
  // Past the page's own policy, as the browser's tools are.
  await page.evaluate(axe.source);
  const { violations: found } = await page.evaluate<AxeResults>('axe.run(document)');
  return found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/** The status of an answer that the page may read, else the error. */
const tryToRead = (
  url: string,
  init: { method?: string; body?: string; credentials?: 'omit' } = {},
): Promise<string> =>
  clerk.page.evaluate(
    ([to, how]) =>
      fetch(to, { credentials: 'include', headers: { 'content-type': 'application/json' }, ...how }).then(
        ({ status }) => String(status),
        (error: unknown) => (error as Error).name,
      ),
    [url, init] as const,
  );

/** A request with the session that needs no leave, whose answer the page cannot read. */
const sendBlindly = (url: string, body: string): Promise<string> =>
  clerk.page.evaluate(
    async ([to, text]) => {
      await fetch(to, { method: 'POST', mode: 'no-cors', credentials: 'include', body: text });
      return 'sent';
    },
    [url, body] as const,
  );

async function postForm(url: string, type: string, text: string): Promise<void> {
  const form = `<form method="post" action="${url}" enctype="${type}"><input name='${text || 'a'}' value='"}'></form>`;
  await clerk.page.setContent(form);
  const answered = clerk.page.waitForURL(url);
  await clerk.page.evaluate('document.forms[0].submit()');
  await answered;
}

async function putDirectly(upload: Record<string, unknown>): Promise<unknown> {
  const [part] = upload['parts'] as { partNumber: number; url: string }[];
  const response = await fetch(part?.url ?? '', { method: 'PUT', body: await readFile(sample) });
  return [{ partNumber: part?.partNumber, etag: response.headers.get('etag') }];
}
