import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { type DevIdentityProvider, startDevIdentityProvider } from './server.ts';

const callback = 'http://127.0.0.1:1/auth/google/callback';

let idp: DevIdentityProvider;
beforeAll(async () => {
  idp = await startDevIdentityProvider({ port: 0, redirectUris: [callback], logger: silentLogger });
});
afterAll(() => idp.close());

const parameters = {
  response_type: 'code',
  scope: 'openid email profile',
  redirect_uri: callback,
  state: 'state',
  nonce: 'nonce',
  code_challenge: 'A'.repeat(43),
  code_challenge_method: 'S256',
};
const begin = (change: Record<string, string | undefined> = {}): Promise<Response> => {
  const query = new URLSearchParams({ client_id: idp.clientId, ...parameters });
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined) query.delete(name);
    else query.set(name, value);
  }
  return fetch(`${idp.issuer}/auth?${query.toString()}`, { redirect: 'manual' });
};

interface Form {
  url: string;
  cookie: string;
}
async function untilForm(): Promise<Form> {
  const response = await begin();
  const cookie = response.headers.getSetCookie().map((line) => line.split(';')[0]);
  return { url: new URL(response.headers.get('location') ?? '', idp.issuer).href, cookie: cookie.join('; ') };
}
const answer = ({ url, cookie }: Form, body: string): Promise<Response> =>
  fetch(url, {
    ...{ method: 'POST', redirect: 'manual', body },
    headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
  });

describe('the development identity provider', () => {
  it('is on loopback, and answers under its own name only', async () => {
    expect(new URL(idp.issuer).hostname).toBe('127.0.0.1');
    const request = get(`${idp.issuer}/.well-known/openid-configuration`, {
      headers: { host: `evil.example:${new URL(idp.issuer).port}` },
    });
    const [refused] = (await once(request, 'response')) as [IncomingMessage];
    expect([refused.statusCode, await text(refused)]).toEqual([421, '']);
    const discovery = await fetch(`${idp.issuer}/.well-known/openid-configuration`);
    expect(await discovery.json()).toMatchObject({ issuer: idp.issuer });
  });

  it('leads back to its one client only, and to nobody without PKCE', async () => {
    for (const change of [{ redirect_uri: 'https://evil.example/' }, { client_id: 'other' }]) {
      const refused = await begin(change);
      expect([refused.status, refused.headers.get('location')]).toEqual([400, null]);
    }
    const refused = await begin({ code_challenge: undefined, code_challenge_method: undefined });
    expect(refused.headers.get('location')).toMatch(/^http:\/\/127\.0\.0\.1:1\/.*[?&]error=invalid_request/);
  });

  it('shows its form to the browser that began, and frames it nowhere', async () => {
    const form = await untilForm();
    const shown = await fetch(form.url, { headers: { cookie: form.cookie } });
    expect(shown.status).toBe(200);
    expect(shown.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(await shown.text()).toContain('name="email"');
    const other = await fetch(form.url);
    expect([other.status, await other.text()]).toEqual([400, expect.stringContaining('Begin again')]);
    expect((await answer({ ...form, cookie: '' }, 'email=a@example.com&do=sign-in')).status).toBe(400);
  });

  it.each([
    ['the cancel button', 'email=a@example.com&do=cancel'],
    ['an empty form', ''],
  ])('takes %s for a refusal', async (_what, body) => {
    const form = await untilForm();
    const resumed = await answer(form, body);
    const back = await fetch(resumed.headers.get('location') ?? '', {
      headers: { cookie: form.cookie },
      redirect: 'manual',
    });
    expect(back.headers.get('location')).toContain('error=access_denied');
  });

  it('reads no form that is longer than its own', async () => {
    const tooLong = `email=${'a'.repeat(5_000)}@example.com&do=sign-in`;
    await expect(answer(await untilForm(), tooLong)).rejects.toThrow('fetch failed');
  });

  it('shows what it refuses as text', async () => {
    const refused = await begin({ client_id: '<script>' });
    const page = await refused.text();
    expect([refused.status, page.includes('<script>')]).toEqual([400, false]);
    expect(page).toContain('<code>invalid_client</code>');
  });
});
