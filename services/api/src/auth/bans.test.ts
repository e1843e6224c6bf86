import { expect, it } from '@jest/globals';
import { refuseBanned } from './bans.ts';

const bannedAt = new Date(0);
it.each([
  [{ bannedAt: null, phoneBanned: false }, null],
  [{ bannedAt, phoneBanned: false }, 'account_banned'],
  [{ bannedAt, phoneBanned: true }, 'account_banned'],
  [{ bannedAt: null, phoneBanned: true }, 'banned'],
])('%j is refused with %s', (holder, code) => {
  const refusal = (): unknown => {
    try {
      refuseBanned(holder);
      return null;
    } catch (error) {
      return error;
    }
  };
  if (code === null) expect(refusal()).toBeNull();
  else expect(refusal()).toMatchObject({ name: 'ProblemError', code });
});
