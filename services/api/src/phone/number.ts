import { createHmac, type KeyObject } from 'node:crypto';
import { ProblemError } from '@millrace/contract';
import { type KeySet } from '@millrace/domain';
import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js/max';

/** Whose mobiles are taken (contract PHN-203). */
const countries: Readonly<Record<string, CountryCode>> = {
  sa: 'SA',
  ae: 'AE',
  kw: 'KW',
  qa: 'QA',
  bh: 'BH',
  om: 'OM',
};

/**
 * The number of a GCC mobile in E.164. With `+` or `00` in front it says its country itself, and `country` is not
 * looked at.
 * @throws ProblemError `invalid_country`, `invalid_phone`
 */
export function mobileNumber(phone: string, country = 'sa'): string {
  const text = phone.trim().replace(/^(?:00|٠٠|۰۰)/u, '+');
  const international = /^[+＋]/u.test(text);
  const home = Object.hasOwn(countries, country) ? countries[country] : undefined;
  if (!international && home === undefined) throw new ProblemError('invalid_country');
  const number = parsePhoneNumberFromString(text, {
    ...(international || home === undefined ? {} : { defaultCountry: home }),
    extract: false,
  });
  const fits =
    number?.ext === undefined &&
    number?.isValid() === true &&
    number.getType() === 'MOBILE' &&
    Object.values(countries).includes(number.country ?? 'US');
  // Letters stand for digits on some keypads; nobody's number is written so.
  if (!fits || /\p{L}/u.test(text)) throw new ProblemError('invalid_phone');
  return number.number;
}

/** The country's code and the last two digits: enough to know one's own number by. */
export function maskedNumber(e164: string): string {
  const shown = parsePhoneNumberFromString(e164)?.countryCallingCode ?? '';
  const hidden = e164.length - 1 - shown.length - 2;
  return `+${shown}${'*'.repeat(hidden)}${e164.slice(-2)}`;
}

/**
 * What is stored of a number: its HMAC-SHA-256 under each key of the set, the signing one first. A hash without a key
 * would be guessed: there are few numbers.
 */
export const phoneHashes = (e164: string, keys: KeySet): Buffer[] => hashes(`phone\n${e164}`, keys);

/** What is stored of a code, bound to its challenge; as `phoneHashes`. */
export const codeHashes = (challengeId: string, code: string, keys: KeySet): Buffer[] =>
  hashes(`code\n${challengeId}\n${code}`, keys);

function hashes(text: string, { signing, byKid }: KeySet): Buffer[] {
  const mac = (key: KeyObject): Buffer => createHmac('sha256', key).update(text).digest();
  const older = [...byKid.values()].filter((key) => key !== signing.key);
  return [signing.key, ...older].map(mac);
}
