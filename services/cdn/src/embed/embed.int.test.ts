import { brotliDecompressSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { problem } from '@millrace/contract';
import {
  type Answer,
  type Ask,
  type CdnHarness,
  closeCdns,
  otherKeys,
  startCdn,
} from '../testing/harness.ts';
import { accountState, projectState, sample, videoState } from '../testing/sample.ts';

let harness: CdnHarness;
let version = 100;
beforeAll(async () => {
  harness = await startCdn();
  await harness.beat();
});
afterAll(closeCdns);

const path = `/e/${sample.videoId}`;
const html = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

/** Asks for the page as a browser does for a frame: without an `Origin`. */
const page = (ask: Ask = {}, at = path): Promise<Answer> =>
  harness.ask(at, { origin: null, ...ask, headers: { ...html, ...ask.headers } });

/** The directives of the page's policy. */
const policyOf = ({ headers }: Answer): Map<string, string> =>
  new Map(
    String(headers['content-security-policy'])
      .split('; ')
      .map((directive) => [directive.split(' ')[0] ?? '', directive.split(' ').slice(1).join(' ')]),
  );

const settingsOf = ({ body }: Answer): Record<string, unknown> => {
  const text = /data-settings="([^"]*)"/.exec(body.toString())?.[1] ?? 'null';
  const plain = text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<');
  return JSON.parse(plain.replaceAll('&gt;', '>').replaceAll('&amp;', '&')) as Record<string, unknown>;
};

async function setState(video: Parameters<typeof videoState>[0], overWatchLimit = false): Promise<void> {
  version++;
  await harness.publish(
    { v: 1, kind: 'video', state: videoState({ version, ...video }) },
    { v: 1, kind: 'account', state: accountState({ version, overWatchLimit }) },
  );
  await harness.clock.advance(1);
  await harness.beat();
}

describe('the embed page', () => {
  it('is a page with the headers that keep it within its bounds [EMB-204, EMB-205, EMB-206]', async () => {
    const answer = await page();
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'referrer-policy': 'strict-origin',
      'x-content-type-options': 'nosniff',
      vary: 'Accept, Accept-Language, Origin',
      'content-length': String(answer.body.length),
    });
    expect(answer.headers).not.toHaveProperty('x-frame-options');
    expect(answer.headers['permissions-policy']).toMatch(/camera=\(\)/);
    expect(answer.headers['permissions-policy']).not.toMatch(/autoplay|fullscreen|picture/);
    expect(Object.fromEntries(policyOf(answer))).toEqual({
      'default-src': "'none'",
      'script-src': "'self'",
      'style-src': "'self'",
      'img-src': "'self'",
      'media-src': "'self' blob:",
      'connect-src': "'self'",
      'form-action': "'self'",
      'base-uri': "'none'",
      'frame-ancestors': `https://${sample.domain}`,
    });
  });

  it('has no script or style within itself, and the title as text', async () => {
    const text = (await page()).body.toString();
    expect(text).toContain('<title>Two &amp; a &lt;half&gt;</title>');
    expect(text).not.toContain('<half>');
    expect(text).not.toMatch(/<style|\sstyle=|\son[a-z]+=|<script(?! src=)/);
    await setState({ title: `"><script>alert('x')</script>` });
    const hostile = (await page()).body.toString();
    expect(hostile).not.toContain('<script>');
    expect(hostile).toContain('&quot;&gt;&lt;script&gt;');
    await setState({});
  });

  it('tells its script the token, until when it lives and whom to speak with', async () => {
    const expiresAt = new Date(harness.clock.now().getTime() + 60_000);
    const token = harness.token({ expiresAt });
    expect(settingsOf(await page({ token }))).toEqual({
      videoId: sample.videoId,
      language: 'en',
      embedder: `https://${sample.domain}`,
      token,
      expiresAtMs: expiresAt.getTime(),
      nowMs: harness.clock.now().getTime(),
      accent: null,
      refused: null,
    });
  });

  it('speaks the language that is asked for', async () => {
    const arabic = (await page({ headers: { 'Accept-Language': 'ar-SA' } })).body.toString();
    expect(arabic).toContain('<html lang="ar" dir="rtl">');
    const token = harness.token();
    const english = await page(
      { token: null, headers: { 'Accept-Language': 'ar' } },
      `${path}?token=${token}&lang=en`,
    );
    expect(english.body.toString()).toContain('<html lang="en" dir="ltr">');
  });

  it('HEAD has its headers and no body', async () => {
    const answer = await page({ method: 'HEAD' });
    expect([answer.status, answer.body.length]).toEqual([200, 0]);
    expect(Number(answer.headers['content-length'])).toBeGreaterThan(0);
  });

  it('works with every kind of token, a preview’s framed by the dashboard alone [EMB-203]', async () => {
    for (const kind of ['playback', 'preview', 'demo'] as const) {
      const answer = await page({ token: harness.token({ kind, domain: 'dashboard.example.net' }) });
      expect(answer.status).toBe(200);
      expect(policyOf(answer).get('frame-ancestors')).toBe('https://dashboard.example.net');
    }
  });

  it('logs and counts without the token', async () => {
    const token = harness.token({ expiresAt: new Date(harness.clock.now().getTime() + 5_000) });
    await page({ token });
    const text = await harness.metrics.render();
    expect(text).toMatch(/millrace_cdn_requests_total\{route="embed",status="200",code=""/);
    expect(text + harness.log.text()).not.toContain(token.split('.')[1]);
  });
});

describe('branding', () => {
  const text = async (whiteLabel: boolean, branding = projectState().branding) => {
    version++;
    await harness.publish(
      { v: 1, kind: 'account', state: accountState({ version, whiteLabel }) },
      { v: 1, kind: 'project', state: projectState({ version, branding }) },
    );
    await harness.clock.advance(1);
    await harness.beat();
    const answer = await page();
    return { body: answer.body.toString(), accent: settingsOf(answer)['accent'], policy: policyOf(answer) };
  };
  afterEach(() => setState({}));

  it('has no effect without white label: the service’s logo stays [EMB-210, EMB-212]', async () => {
    const { body, accent, policy } = await text(false);
    expect(body).toMatch(/<img class="logo" src="\.\.\/player\/logo-[0-9a-f]{16}\.svg" alt="Millrace"/);
    expect(accent).toBeNull();
    expect(policy.get('img-src')).toBe("'self'");
  });

  it('puts the customer’s logo and colour in place of the service’s [EMB-211, EMB-213]', async () => {
    const { body, accent, policy } = await text(true);
    expect(body).toContain('<img class="logo" src="https://shop.example.com/logo.svg"');
    expect(body).not.toContain('Millrace');
    expect(accent).toBe('#c01048');
    expect(policy.get('img-src')).toBe("'self' https://shop.example.com");
  });

  it('hides the logo, or keeps it, as told [EMB-210]', async () => {
    const branding = { hideLogo: true, primaryColor: null, logoUrl: null };
    expect((await text(true, branding)).body).not.toContain('class="logo"');
    expect((await text(true, { ...branding, hideLogo: false })).body).toContain('alt="Millrace"');
  });

  it.each([
    ["https://shop.example.com/;script-src 'unsafe-inline'", ' https://shop.example.com'],
    ['https://bücher.example:8443/logo.svg', ' https://xn--bcher-kva.example:8443'],
    ['https://a;sandbox/logo.svg', ''],
    ["https://a,default-src'none'/logo.svg", ''],
    ['https://*/logo.svg', ''],
    ['http://shop.example.com/logo.svg', ''],
    ['javascript:alert(1)', ''],
  ])('lets no address of a logo change the policy otherwise: %s', async (logoUrl, allowed) => {
    const { policy } = await text(true, { hideLogo: false, primaryColor: null, logoUrl });
    expect(policy.get('img-src')).toBe(`'self'${allowed}`);
    expect(policy.get('script-src')).toBe("'self'");
    expect([...policy.keys()]).not.toContain('sandbox');
    expect(policy.size).toBe(9);
  });
});

describe('checks of the embed page', () => {
  const url = (query: string): string => `${path}${query}`;
  it.each<[string, (token: string) => string, number, string | undefined]>([
    ['no token', () => '', 403, 'token_missing'],
    ['an empty token', () => '?token=', 403, 'token_missing'],
    ['two empty ones', () => '?token=&token=', 403, 'token_missing'],
    ['the same twice', (token) => `?token=${token}&token=${token}`, 200, undefined],
    ['the same three times', (token) => `?token=${token}&a=b&token=${token}&token=${token}`, 200, undefined],
    [
      'another beside it',
      (token) => `?token=${token}&token=${harness.token({ kind: 'demo' })}`,
      403,
      'token_invalid',
    ],
    ['an empty one beside it', (token) => `?token=${token}&token=`, 403, 'token_invalid'],
    ['padding', (token) => `?token=${token}=`, 403, 'token_invalid'],
  ])('%s [EMB-207]', async (_title, query, status, code) => {
    const answer = await page({ token: null }, url(query(harness.token())));
    expect([answer.status, answer.headers['x-svc-error']]).toEqual([status, code]);
  });

  it.each([
    ['of another key', () => harness.token({}, otherKeys), 'token_invalid'],
    ['for another video', () => harness.token({ videoId: 'vid_0000000000000000000002' }), 'token_invalid'],
    ['expired', () => harness.token({ expiresAt: harness.clock.now() }), 'token_expired'],
  ])('a token %s [EMB-201]', async (_title, token, code) => {
    const answer = await page({ token: token() });
    expect([answer.status, answer.headers['x-svc-error']]).toEqual([403, code]);
  });

  it.each<[string, Record<string, string>, string | undefined]>([
    ['nothing', {}, undefined],
    ['its domain', { Referer: `https://${sample.domain}/watch` }, undefined],
    ['the CDN itself', { Referer: 'https://cdn.example.net/' }, undefined],
    ['another page', { Referer: 'https://other.example.com/' }, 'domain_mismatch'],
    ['a subdomain', { Referer: `https://www.${sample.domain}/` }, 'domain_mismatch'],
    ['http', { Referer: `http://${sample.domain}/` }, 'domain_mismatch'],
    ['another Origin', { Origin: 'https://other.example.com' }, 'domain_mismatch'],
  ])('with a referrer of %s [EMB-202]', async (_title, headers, code) => {
    expect((await page({ headers })).headers['x-svc-error']).toBe(code);
  });

  it.each([
    '/e/',
    '/e/none',
    `${path}/`,
    `/e/../e/${sample.videoId}`,
    '/e/vid_%61',
    '/',
    '/player',
    '/player/../e',
    '/x',
  ])('%s is no path', async (at) => {
    const answer = await page({}, at);
    expect([answer.status, answer.headers['x-svc-error']]).toEqual([404, 'not_found']);
  });

  it.each(['POST', 'PUT', 'DELETE'])('%s is 404', async (method) => {
    expect((await page({ method })).status).toBe(404);
  });
});

describe('a refusal', () => {
  afterEach(() => setState({}));
  const heading = ({ body }: Answer): string | undefined => /<h2>(.*?)<\/h2>/.exec(body.toString())?.[1];

  it.each([
    ['held', 403, 'video_unavailable', 'This video is on hold'],
    ['deleted', 403, 'video_unavailable', 'This video has been deleted'],
    ['failed', 403, 'video_unavailable', 'This video is not available'],
  ] as const)(
    'of a %s video is a problem, or a page for who reads pages [EMB-201, EMB-208]',
    async (status, http, code, words) => {
      await setState({ status });
      const plain = await page({ headers: { Accept: 'application/json' } });
      expect([plain.status, plain.headers['x-svc-error']]).toEqual([http, code]);
      expect(plain.headers['content-type']).toBe('application/problem+json');
      expect(problem.parse(JSON.parse(plain.body.toString()))).toMatchObject({ status: http, code });
      const read = await page();
      expect([read.status, read.headers['x-svc-error']]).toEqual([http, code]);
      expect(read.headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'referrer-policy': 'strict-origin',
        'content-length': String(read.body.length),
      });
      expect(heading(read)).toBe(words);
      expect(read.body.toString()).toContain('<button type="submit">Try again</button>');
      expect(read.body.toString()).not.toContain('<video');
    },
  );

  it('of an account over its limit, and of states that nobody confirms, is said in words', async () => {
    await setState({}, true);
    expect(heading(await page())).toBe('This video cannot play at the moment');
    harness.record.down = true;
    await harness.clock.advance(61_000);
    const unconfirmed = await page();
    expect([unconfirmed.status, unconfirmed.headers['retry-after']]).toEqual([503, '5']);
    expect(heading(unconfirmed)).toBe('This video cannot be checked right now');
    harness.record.down = false;
  });

  it('of a video without an encode is 404', async () => {
    await setState({ indexKey: null });
    const answer = await page();
    expect([answer.status, heading(answer)]).toEqual([404, 'There is no video here']);
  });

  it('may be framed by the token’s domain, and by nobody when the token is not genuine', async () => {
    const expired = await page({ token: harness.token({ expiresAt: harness.clock.now() }) });
    expect(policyOf(expired).get('frame-ancestors')).toBe(`https://${sample.domain}`);
    expect(settingsOf(expired)).toMatchObject({ refused: 'token_expired' });
    const foreign = await page({ headers: { Referer: 'https://other.example.com/' } });
    expect(policyOf(foreign).get('frame-ancestors')).toBe(`https://${sample.domain}`);
    for (const token of [null, 'a.b', harness.token({}, otherKeys)]) {
      const answer = await page({ token });
      expect(policyOf(answer).get('frame-ancestors')).toBe("'none'");
      expect(answer.body.toString()).not.toMatch(/<script|data-settings/);
    }
  });

  it('keeps token and language for the next try, as text', async () => {
    const answer = await page({ token: null }, `${path}?lang=ar&token=%22%3E%3Cb%3E&x=y`);
    const fields = [
      ...answer.body.toString().matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)" \/>/g),
    ];
    expect(fields.map(([, name, value]) => [name, value])).toEqual([
      ['token', '&quot;&gt;&lt;b&gt;'],
      ['lang', 'ar'],
    ]);
    expect(heading(answer)).toMatch(/لا يمكن فتح/);
  });
});

describe('the player’s files', () => {
  const files = async (): Promise<string[]> =>
    [...(await page()).body.toString().matchAll(/\.\.(\/player\/[^"]+)"/g)].map(([, name]) => name ?? '');
  const get = (at: string, encoding?: string): Promise<Answer> =>
    harness.ask(at, { token: null, origin: null, headers: encoding ? { 'Accept-Encoding': encoding } : {} });

  it('never change under their names, and come compressed to who takes that [CDN-216]', async () => {
    const names = await files();
    expect(names.map((name) => name.replace(/-[0-9a-f]{16}\./, '.'))).toEqual([
      '/player/player.css',
      '/player/player.js',
      '/player/logo.svg',
    ]);
    for (const name of names) {
      const small = await get(name, 'gzip, br;q=0.9');
      const plain = await get(name, 'gzip, br;q=0');
      expect([small.status, small.headers['content-encoding']]).toEqual([200, 'br']);
      expect([plain.status, plain.headers['content-encoding']]).toEqual([200, undefined]);
      expect((await get(name)).headers['content-encoding']).toBeUndefined();
      expect(brotliDecompressSync(small.body).equals(plain.body)).toBe(true);
      expect(small.headers).toMatchObject({
        'cache-control': 'public, max-age=31536000, immutable',
        vary: 'Accept-Encoding, Origin',
        'x-content-type-options': 'nosniff',
      });
    }
  });

  it('are at most 200 KB with the page, compressed as they are sent', async () => {
    const sizes = await Promise.all((await files()).map(async (name) => (await get(name, 'br')).body.length));
    const all = sizes.reduce((sum, size) => sum + size, (await page()).body.length);
    expect(all).toBeGreaterThan(100_000);
    expect(all).toBeLessThanOrEqual(200_000);
  });

  it('are 404 under another name', async () => {
    const [name = ''] = await files();
    for (const at of [name.replace(/-[0-9a-f]/, '-g'), '/player/player.js', '/player/..%2fx']) {
      expect((await get(at, 'br')).headers['x-svc-error']).toBe('not_found');
    }
  });
});
