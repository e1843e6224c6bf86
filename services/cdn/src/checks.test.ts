import { beforeEach, describe, expect, it } from '@jest/globals';
import { type Quality } from '@millrace/contract';
import { parseKeySet, type PlaybackClaims, signPlaybackToken } from '@millrace/domain';
import { admit, admitPage, brandingOf, permit, type PlaybackView } from './checks.ts';
import { accountState, projectState, sample, videoState } from './testing/sample.ts';
import { parseTarget, type Target } from './http/target.ts';
import { createTokens, type Tokens } from './tokens.ts';

const keySet = parseKeySet(`k1:${'1'.repeat(32)}`);
const now = new Date('2030-01-01T00:00:00.000Z');
const ownOrigin = 'https://cdn.example.net';
const at = `https://${sample.domain}`;
const nowhere = { origin: null, referer: null };
const after = (ms: number): Date => new Date(now.getTime() + ms);

const sign = (more: Partial<PlaybackClaims> = {}, keys = keySet): string =>
  signPlaybackToken(
    { kind: 'playback', videoId: sample.videoId, domain: sample.domain, expiresAt: after(1), ...more },
    keys,
  );
const target = (path: string): Target => {
  const parsed = parseTarget(`/v/${sample.videoId}/${path}`);
  if (parsed === null) throw new Error(`no target: ${path}`);
  return parsed;
};

let tokens: Tokens;
beforeEach(() => {
  tokens = createTokens(keySet, 1e6);
});

describe('admit', () => {
  const master = target('master.m3u8');
  const ask = (
    presented: readonly string[],
    head = { origin: at as string | null, referer: null as string | null },
  ) => {
    const answer = admit(master, presented, head, now, { tokens, ownOrigin });
    return 'refused' in answer ? answer.refused : 'admitted';
  };

  it('gives the verified token', () => {
    const text = sign();
    expect(admit(master, [text], { origin: at, referer: null }, now, { tokens, ownOrigin })).toBe(
      tokens.verify(text),
    );
  });

  it.each<[string, () => string[], string]>([
    ['no token', () => [], 'token_missing'],
    ['an empty token', () => [''], 'token_missing'],
    ['two empty tokens', () => ['', ''], 'token_invalid'],
    ['the token twice', () => [sign(), sign()], 'token_invalid'],
    ['an empty and a good token', () => ['', sign()], 'token_invalid'],
    ['a good and an empty token', () => [sign(), ''], 'token_invalid'],
    ['junk', () => ['x'], 'token_invalid'],
    ['another key’s token', () => [sign({}, parseKeySet(`k1:${'2'.repeat(32)}`))], 'token_invalid'],
    ['another video’s token', () => [sign({ videoId: 'vid_2' })], 'token_invalid'],
    [
      'another video’s token that expired',
      () => [sign({ videoId: 'vid_2', expiresAt: now })],
      'token_invalid',
    ],
    ['a token at its instant', () => [sign({ expiresAt: now })], 'token_expired'],
    ['a token a moment before it', () => [sign({ expiresAt: after(1) })], 'admitted'],
  ])('of a request with %s: %s', (_what, presented, expected) => {
    expect(ask(presented())).toBe(expected);
  });

  it.each<[string, string | null, string | null, string]>([
    ['neither Origin nor Referer', null, null, 'origin_missing'],
    ['the domain’s Origin', at, null, 'admitted'],
    ['the domain’s Referer', null, `${at}/watch`, 'admitted'],
    ['the CDN’s own Origin, in any case', 'https://CDN.example.NET', null, 'admitted'],
    ['the CDN’s own Referer', null, `${ownOrigin}/e/x`, 'admitted'],
    ['a foreign Origin over a good Referer', 'https://evil.example', `${at}/`, 'domain_mismatch'],
    ['a foreign Referer', null, 'https://evil.example/', 'domain_mismatch'],
    ['a Referer that is none', null, '', 'domain_mismatch'],
  ])('of a request with %s', (_what, origin, referer, expected) => {
    expect(ask([sign()], { origin, referer })).toBe(expected);
  });

  it('names expiry before the origin, and forgets what expired', () => {
    const text = sign({ expiresAt: now });
    const known = tokens.verify(text);
    expect(ask([text], nowhere)).toBe('token_expired');
    expect(tokens.verify(text)).not.toBe(known);
  });
});

describe('admitPage', () => {
  const ask = (
    presented: readonly string[],
    head = { origin: at as string | null, referer: null as string | null },
  ) => admitPage(sample.videoId, presented, head, now, { tokens, ownOrigin });

  it.each<[string, () => string[], string]>([
    ['no token', () => [], 'token_missing'],
    ['empty tokens', () => ['', ''], 'token_missing'],
    ['two tokens', () => [sign(), sign({ expiresAt: after(2) })], 'token_invalid'],
    ['a token and an empty one', () => [sign(), ''], 'token_invalid'],
    ['the same and another', () => [sign(), sign(), 'x'], 'token_invalid'],
    ['junk', () => ['x'], 'token_invalid'],
    ['another video’s token', () => [sign({ videoId: 'vid_2' })], 'token_invalid'],
  ])('of a page with %s knows no token: %s', (_what, presented, refused) => {
    expect(ask(presented())).toEqual({ token: null, refused });
  });

  it.each<[string, string | null, string | null, string | null]>([
    ['from nowhere', null, null, null],
    ['from the domain', at, null, null],
    ['from the CDN', null, `${ownOrigin}/e/x`, null],
    ['from elsewhere', 'https://evil.example', null, 'domain_mismatch'],
    ['from elsewhere by its Referer', null, 'https://evil.example/', 'domain_mismatch'],
  ])('takes the same token twice, %s', (_what, origin, referer, refused) => {
    const text = sign();
    expect(ask([text, text], { origin, referer })).toEqual({ token: tokens.verify(text), refused });
  });

  it('keeps the token of a page that it refuses for its expiry, and forgets it', () => {
    const text = sign({ expiresAt: now });
    const known = tokens.verify(text);
    expect(ask([text])).toEqual({ token: known, refused: 'token_expired' });
    expect(tokens.verify(text)).not.toBe(known);
    expect(ask([sign()]).refused).toBeNull();
  });
});

describe('permit', () => {
  const view = (more: Partial<PlaybackView> = {}): PlaybackView => ({
    ...{ video: videoState(), account: accountState(), project: projectState() },
    ...more,
  });
  const ask = (states: PlaybackView, quality: Quality | null = '720p'): string =>
    permit({ quality }, states)?.refused ?? 'permitted';

  it('lets a ready video play, up to the plan’s quality', () => {
    for (const quality of [null, '360p', '720p'] as const) expect(ask(view(), quality)).toBe('permitted');
    for (const quality of ['1080p', '1440p', '2160p'] as const) {
      expect(ask(view(), quality)).toBe('plan_limit_reached');
    }
  });

  it('lets nothing play of a video or account that is not there to play', () => {
    for (const status of ['held', 'deleted'] as const) {
      expect(ask(view({ video: videoState({ status }) }))).toBe('video_unavailable');
    }
    expect(ask(view({ video: null }))).toBe('video_unavailable');
    expect(ask(view({ account: null }))).toBe('video_unavailable');
  });

  it('lets nothing play over the watch limit, and names the video first', () => {
    const account = accountState({ overWatchLimit: true });
    expect(ask(view({ account }), null)).toBe('plan_limit_reached');
    expect(ask(view({ account, video: videoState({ status: 'held' }) }))).toBe('video_unavailable');
  });
});

describe('brandingOf', () => {
  const view = (whiteLabel: boolean, project = true) => ({
    video: videoState(),
    account: accountState({ whiteLabel }),
    project: project ? projectState() : null,
  });

  it('is the project’s where the plan has white label, from the moment that it has', () => {
    expect(brandingOf(view(true))).toEqual(projectState().branding);
    expect(brandingOf(view(false))).toBeNull();
  });

  it('is none of a project or account that is not known', () => {
    expect(brandingOf(view(true, false))).toBeNull();
    expect(brandingOf({ ...view(true), account: null })).toBeNull();
  });
});
