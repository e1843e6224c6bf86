import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { TokenKeeper, type TokenKeeperDeps, type Verdict } from './token-keeper.ts';

const start = Date.UTC(2030, 0, 1);

describe('TokenKeeper', () => {
  const asked: string[] = [];
  let verdict: Verdict | Promise<Verdict>;
  let renewed: number;
  let expired: number;
  beforeEach(() => {
    jest.useFakeTimers({ now: start });
    asked.length = 0;
    verdict = 'ok';
    renewed = 0;
    expired = 0;
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  const keeper = (lifeMs: number): TokenKeeper => {
    const deps: TokenKeeperDeps = {
      ask: (reason) => asked.push(reason),
      verify: () => Promise.resolve(verdict),
      now: () => Date.now(),
      onRenewed: () => renewed++,
      onExpired: () => expired++,
    };
    return new TokenKeeper('old.one', start + lifeMs, deps);
  };
  const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);
  const fresh = (lifeMs: number | null = 3_600_000) => ({
    token: 'new.one',
    expiresAtMs: lifeMs === null ? null : Date.now() + lifeMs,
  });

  it.each([
    [3_600_000, 3_540_000],
    [60_000, 48_000],
    [10_000, 8_000],
  ])('asks in time: a token that lives %i ms after %i ms', async (lifeMs, atMs) => {
    keeper(lifeMs);
    await pass(atMs - 1);
    expect(asked).toEqual([]);
    await pass(1);
    expect(asked).toEqual(['expiring']);
  });

  it('uses the new token at once and asks again in time for the next', async () => {
    const kept = keeper(3_600_000);
    await pass(3_540_000);
    await kept.offer(fresh());
    expect([kept.token, await kept.usable(), renewed]).toEqual(['new.one', 'new.one', 1]);
    await pass(3_539_000);
    expect(asked).toEqual(['expiring']);
    await pass(1_000);
    expect(asked).toEqual(['expiring', 'expiring']);
  });

  it('asks again until it is answered, and says so when the token has expired', async () => {
    const kept = keeper(100_000);
    await pass(80_000);
    await pass(19_999);
    expect(asked).toEqual(['expiring', 'expiring', 'expiring', 'expiring']);
    await pass(1);
    expect([asked.at(-1), kept.renewing, expired]).toEqual(['expired', true, 0]);
    await pass(8_000);
    expect([kept.renewing, expired, renewed]).toEqual([false, 1, 0]);
    const count = asked.length;
    await pass(600_000);
    expect(asked).toHaveLength(count);
    // A late answer is still taken.
    await kept.offer(fresh());
    expect([kept.token, renewed]).toEqual(['new.one', 1]);
  });

  it('lets requests wait while an expired token is renewed', async () => {
    const kept = keeper(10_000);
    await pass(10_500);
    const waiting = kept.usable();
    await kept.offer(fresh());
    expect(await waiting).toBe('new.one');
    await pass(60_000);
    expect(expired).toBe(0);
  });

  it('gives the old token back when nobody renews it: the CDN then says why', async () => {
    const kept = keeper(10_000);
    await pass(10_500);
    const waiting = kept.usable();
    await pass(8_000);
    expect([await waiting, expired]).toEqual(['old.one', 1]);
  });

  it('renews a token that the CDN calls expired sooner than thought, once for all who ask', async () => {
    const kept = keeper(3_600_000);
    const results = Promise.all([kept.renew(), kept.renew()]);
    expect(asked).toEqual(['expired']);
    await kept.offer(fresh(null));
    expect(await results).toEqual([true, true]);
    // Nobody knows until when it lives: a refusal will tell.
    await pass(86_400_000);
    expect(asked).toEqual(['expired']);
  });

  it.each([-1, 0, 8e14])(
    'does not ask again and again when the next token is said to live for %i ms',
    async (lifeMs) => {
      const kept = keeper(3_600_000);
      await kept.offer(fresh(lifeMs));
      await pass(86_400_000);
      expect([kept.token, asked]).toEqual(['new.one', []]);
    },
  );

  it.each<Verdict>([
    { code: 'token_invalid' },
    { code: 'token_expired' },
    { code: 'domain_mismatch' },
    'unreachable',
  ])('keeps the token when the new one is %j', async (bad) => {
    const kept = keeper(3_600_000);
    verdict = bad;
    await kept.offer(fresh());
    expect([kept.token, renewed]).toEqual(['old.one', 0]);
  });

  it('takes a good token also while the video is held', async () => {
    const kept = keeper(3_600_000);
    verdict = { code: 'video_unavailable' };
    await kept.offer(fresh());
    expect(kept.token).toBe('new.one');
  });

  it('takes the last of several offers, whichever is tried first', async () => {
    const kept = keeper(3_600_000);
    let answer: (late: Verdict) => void = () => undefined;
    verdict = new Promise((resolve) => (answer = resolve));
    const first = kept.offer({ token: 'first.one', expiresAtMs: null });
    verdict = 'ok';
    await kept.offer({ token: 'second.one', expiresAtMs: null });
    answer('ok');
    await first;
    expect([kept.token, renewed]).toEqual(['second.one', 1]);
  });
});
