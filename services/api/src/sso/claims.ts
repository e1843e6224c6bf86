import { type Identity } from '@millrace/store';
import { type IDToken } from 'openid-client';
import { z } from 'zod';

const email = z.email().max(254);
const maximumName = 100;

/** Who an ID token names; its e-mail only if the provider has verified it. */
export function identityOf(provider: string, claims: IDToken): Identity {
  const verified = isTrue(provider === 'microsoft' ? claims['xms_edov'] : claims['email_verified']);
  const address = verified ? (email.safeParse(claims['email']).data ?? null) : null;
  return {
    issuer: claims.iss,
    subject: claims.sub,
    email: address,
    displayName: nameOf(claims['name']) ?? nameOf(address?.split('@')[0]) ?? 'Account',
  };
}

/** Microsoft has sent `xms_edov` as a boolean, a number and text. */
const isTrue = (claim: unknown): boolean => [true, 1, '1', 'true'].includes(claim as never);

/** As our own names are: no control characters, not blank, 100 code points at most. */
function nameOf(claim: unknown): string | null {
  if (typeof claim !== 'string') return null;
  const shown = Array.from(
    claim
      .toWellFormed()
      .replace(/\p{Cc}+/gu, ' ')
      .trim(),
  );
  return shown.length === 0 ? null : shown.slice(0, maximumName).join('').trim();
}
