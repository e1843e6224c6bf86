import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { problem } from '@millrace/contract';
import { ask, type CdnHarness, closeCdns, otherKeys, startCdn } from './testing/harness.ts';
import { accountState, sample, videoState } from './testing/sample.ts';

/** What may be wrong with a request, in the contract's order of checks, each with what must come of it. */
const faults = {
  path: [404, 'not_found'],
  noToken: [403, 'token_missing'],
  forged: [403, 'token_invalid'],
  otherVideo: [403, 'token_invalid'],
  expired: [403, 'token_expired'],
  noOrigin: [403, 'origin_missing'],
  otherOrigin: [403, 'domain_mismatch'],
  held: [403, 'video_unavailable'],
  overLimit: [403, 'plan_limit_reached'],
  aboveQuality: [403, 'plan_limit_reached'],
} as const;
type Fault = keyof typeof faults;
const names = Object.keys(faults) as Fault[];

/** Pairs that no one request can have. */
const exclusive = new Set([
  'noToken+forged',
  'noToken+otherVideo',
  'noToken+expired',
  'noOrigin+otherOrigin',
]);

let harness: CdnHarness;
let version = 100;
beforeAll(async () => {
  harness = await startCdn();
  await harness.beat();
});
afterAll(closeCdns);

/** Sets the states of video and account and waits until the CDN knows them. */
async function setStates(status: 'ready' | 'held', overWatchLimit: boolean): Promise<void> {
  version++;
  await harness.publish(
    { v: 1, kind: 'video', state: videoState({ version, status }) },
    { v: 1, kind: 'account', state: accountState({ version, overWatchLimit }) },
  );
  await harness.clock.advance(1);
  await harness.beat();
}

/** One path of each kind of file, in the plan's quality and above it; a kind without a quality is never above. */
const kinds = {
  master: { path: 'master.m3u8', above: null, wrong: 'master.mpd' },
  playlist: { path: '720p/index.m3u8', above: '1080p/index.m3u8', wrong: '720p/index.m3u' },
  segment: { path: '720p/seg-0.m4s', above: '1080p/seg-0.m4s', wrong: '720p/seg-0.mp4' },
  init: { path: '720p/init.mp4', above: '1080p/init.mp4', wrong: '720p/init.m4s' },
  poster: { path: 'poster.jpg', above: null, wrong: 'poster.png' },
} as const;
type Kind = keyof typeof kinds;
const allKinds = Object.keys(kinds) as Kind[];
const own = `https://${sample.domain}`;
const foreign = 'https://other.example.com';

async function askWith(wrong: readonly Fault[], kind: Kind) {
  const has = (fault: Fault): boolean => wrong.includes(fault);
  const token = harness.token(
    {
      ...(has('otherVideo') && { videoId: 'vid_0000000000000000000002' }),
      ...(has('expired') && { expiresAt: harness.clock.now() }),
    },
    has('forged') ? otherKeys : undefined,
  );
  const { path, above, wrong: unserved } = kinds[kind];
  const asked = has('aboveQuality') ? (above ?? path) : path;
  return harness.ask(has('path') ? unserved : asked, {
    token: has('noToken') ? null : token,
    origin: has('noOrigin') ? null : has('otherOrigin') ? foreign : own,
  });
}

describe('checks of a playback request', () => {
  afterEach(() => setStates('ready', false));

  it('lets a request pass that has nothing wrong', async () => {
    for (const kind of allKinds) expect([kind, (await askWith([], kind)).status]).toEqual([kind, 200]);
  });

  /** Asks for each kind of file with these faults: the first of them must decide. */
  async function expectRefused(wrong: readonly Fault[]): Promise<void> {
    await setStates(wrong.includes('held') ? 'held' : 'ready', wrong.includes('overLimit'));
    const first = names.find((fault) => wrong.includes(fault)) ?? 'path';
    const [status, code] = faults[first];
    const origin = wrong.includes('noOrigin') ? undefined : wrong.includes('otherOrigin') ? foreign : own;
    for (const kind of allKinds) {
      if (first === 'aboveQuality' && kinds[kind].above === null) continue;
      const answer = await askWith(wrong, kind);
      expect([kind, answer.status, answer.headers['x-svc-error']]).toEqual([kind, status, code]);
      expect(answer.headers['content-type']).toBe('application/problem+json');
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(answer.headers.vary).toBe('Origin');
      expect(answer.headers['access-control-allow-origin']).toBe(origin);
      const body = problem.parse(JSON.parse(answer.body.toString()));
      expect(body).toMatchObject({ status, code, type: `https://docs.example/errors/${code}` });
    }
  }

  it.each(['path', 'noToken', 'forged', 'otherVideo'] as const)(
    'refuses %s [CDN-321, CDN-322, CDN-323]',
    (fault) => expectRefused([fault]),
  );
  it.each(['expired', 'noOrigin', 'otherOrigin'] as const)(
    'refuses %s [CDN-324, CDN-325, CDN-326]',
    (fault) => expectRefused([fault]),
  );
  it.each(['held', 'overLimit', 'aboveQuality'] as const)('refuses %s [CDN-327, CDN-328]', (fault) =>
    expectRefused([fault]),
  );

  const pairs = names
    .flatMap((first, at) => names.slice(at + 1).map((second) => [first, second] as const))
    .filter((pair) => !exclusive.has(pair.join('+')));
  it.each(pairs)('refuses %s and %s by the first [CDN-330, CDN-331, CDN-309]', (first, second) =>
    expectRefused([first, second]),
  );
});

/** The same bytes in another spelling: 32 bytes leave two bits of the last character unused. */
function respelled(token: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const last = alphabet.indexOf(token.at(-1) ?? '');
  const other = `${token.slice(0, -1)}${alphabet[last ^ 1] ?? ''}`;
  const bytes = (text: string) => Buffer.from(text.split('.')[1] ?? '', 'base64url');
  expect(bytes(other)).toEqual(bytes(token));
  return `?token=${other}`;
}

describe('token parameter', () => {
  const url = (query: string): string => `/v/${sample.videoId}/master.m3u8${query}`;
  it.each<[string, (token: string) => string, number, string]>([
    ['no query', () => '', 403, 'token_missing'],
    ['an empty query', () => '?', 403, 'token_missing'],
    ['an empty value', () => '?token=', 403, 'token_missing'],
    ['no value', () => '?token', 403, 'token_missing'],
    ['another name', (token) => `?tokens=${token}&xtoken=${token}&Token=${token}`, 403, 'token_missing'],
    ['an encoded name', (token) => `?%74oken=${token}`, 403, 'token_missing'],
    ['the same twice', (token) => `?token=${token}&token=${token}`, 403, 'token_invalid'],
    ['an empty one and a good one', (token) => `?token=&token=${token}`, 403, 'token_invalid'],
    ['an encoded dot', (token) => `?token=${token.replace('.', '%2E')}`, 403, 'token_invalid'],
    ['padding', (token) => `?token=${token}=`, 403, 'token_invalid'],
    ['a last character spelled anew', respelled, 403, 'token_invalid'],
    ['junk in it', (token) => `?token=${token.slice(0, 9)}!${token.slice(9)}`, 403, 'token_invalid'],
    ['white space behind it', (token) => `?token=${token}%20`, 403, 'token_invalid'],
    ['no signature', (token) => `?token=${token.split('.')[0] ?? ''}.`, 403, 'token_invalid'],
    ['no text at all', () => '?token=.', 403, 'token_invalid'],
    ['two empty ones', () => '?token=&token=', 403, 'token_invalid'],
    ['a fragment', (token) => `?token=${token}#x`, 403, 'token_invalid'],
  ])('%s [CDN-322, CDN-333, CDN-334]', async (_title, query, status, code) => {
    const answer = await ask(harness.cdn.listening, url(query(harness.token())));
    expect([answer.status, answer.headers['x-svc-error']]).toEqual([status, code]);
  });

  it('stands among others, which do not matter [CDN-214]', async () => {
    const answer = await ask(harness.cdn.listening, url(`?a=1&&token=${harness.token()}&b=%zz`));
    expect(answer.status).toBe(200);
  });

  it('expires at its instant, not a millisecond later [CDN-306]', async () => {
    const at = (offset: number) => new Date(harness.clock.now().getTime() + offset);
    const status = async (offset: number) =>
      (await harness.ask('master.m3u8', { token: harness.token({ expiresAt: at(offset) }) })).status;
    expect([await status(1), await status(0), await status(-1)]).toEqual([200, 403, 403]);
  });
});

describe('origin', () => {
  it.each<[string, Record<string, string>, number, string | undefined]>([
    ['Origin in capitals', { Origin: 'https://SHOP.Example.com' }, 200, undefined],
    ['Referer of the domain', { Referer: 'https://shop.example.com/watch?v=1' }, 200, undefined],
    ['Referer of the CDN itself', { Referer: 'https://cdn.example.net/' }, 200, undefined],
    ['Origin of the CDN itself', { Origin: 'https://CDN.example.net' }, 200, undefined],
    [
      'a good Referer under a foreign Origin',
      { Origin: 'null', Referer: 'https://shop.example.com/' },
      403,
      'domain_mismatch',
    ],
    ['http', { Origin: 'http://shop.example.com' }, 403, 'domain_mismatch'],
    ['a port', { Origin: 'https://shop.example.com:443' }, 403, 'domain_mismatch'],
    ['a subdomain', { Origin: 'https://www.shop.example.com' }, 403, 'domain_mismatch'],
    [
      'a Referer that only contains it',
      { Referer: 'https://evil.example/https://shop.example.com/' },
      403,
      'domain_mismatch',
    ],
    ['null', { Origin: 'null' }, 403, 'domain_mismatch'],
    [
      'the domain with more behind it',
      { Origin: 'https://shop.example.com.evil.example' },
      403,
      'domain_mismatch',
    ],
    ['the domain with more before it', { Origin: 'https://evilshop.example.com' }, 403, 'domain_mismatch'],
    ['the parent of the domain', { Origin: 'https://example.com' }, 403, 'domain_mismatch'],
    ['a final dot', { Origin: 'https://shop.example.com.' }, 403, 'domain_mismatch'],
    ['a final slash', { Origin: 'https://shop.example.com/' }, 403, 'domain_mismatch'],
    ['userinfo', { Origin: 'https://shop.example.com@evil.example' }, 403, 'domain_mismatch'],
    ['a Referer with a port', { Referer: 'https://shop.example.com:8443/a' }, 403, 'domain_mismatch'],
    ['a Referer by http', { Referer: 'http://shop.example.com/a' }, 403, 'domain_mismatch'],
    [
      'a Referer with userinfo',
      { Referer: 'https://shop.example.com@evil.example/' },
      403,
      'domain_mismatch',
    ],
    ['a Referer that is none', { Referer: 'shop.example.com' }, 403, 'domain_mismatch'],
    ['the CDN by http', { Origin: 'http://cdn.example.net' }, 403, 'domain_mismatch'],
    ['an empty Origin', { Origin: '' }, 403, 'origin_missing'],
  ])('%s [CDN-301, CDN-304, CDN-326]', async (_title, headers, status, code) => {
    const answer = await harness.ask('master.m3u8', { origin: null, headers });
    expect([answer.status, answer.headers['x-svc-error']]).toEqual([status, code]);
  });
});

describe('a preview', () => {
  const status = async (origin: string) => {
    const token = harness.token({ kind: 'preview', domain: 'app.example.com' });
    const answer = await harness.ask('720p/seg-0.m4s', { token, origin });
    return answer.headers['x-svc-error'] ?? answer.status;
  };

  it('plays on its dashboard host and in the embed page, nowhere else [PVT-203, CDN-305]', async () => {
    expect(await status('https://app.example.com')).toBe(200);
    expect(await status('https://cdn.example.net')).toBe(200);
    for (const other of [`https://${sample.domain}`, 'https://x.app.example.com', 'http://app.example.com']) {
      expect(await status(other)).toBe('domain_mismatch');
    }
  });
});

describe('plan', () => {
  it.each([
    ['720p/seg-0.m4s', 200],
    ['1080p/seg-0.m4s', 403],
    ['2160p/init.mp4', 403],
    ['1440p/iframes.m3u8', 403],
    ['audio/seg-0.m4s', 200],
    ['poster.jpg', 200],
  ])('%s with a plan up to 720p: %s [CDN-328]', async (path, status) => {
    const answer = await harness.ask(path);
    expect(answer.status).toBe(status);
    expect(answer.headers['x-svc-error']).toBe(status === 200 ? undefined : 'plan_limit_reached');
  });

  it('applies to preview and demo tokens and to pictures over the watch limit', async () => {
    await setStates('ready', true);
    for (const kind of ['playback', 'preview', 'demo'] as const) {
      const answer = await harness.ask('poster.jpg', { token: harness.token({ kind }) });
      expect(answer.headers['x-svc-error']).toBe('plan_limit_reached');
    }
    await setStates('ready', false);
  });
});
