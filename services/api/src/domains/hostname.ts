import { fieldProblem, ProblemError } from '@millrace/contract';
import { domainToASCII } from 'node:url';
import { parse } from 'tldts';

/** The verification record's name, `_svc-verify.` before it, must still fit the DNS's 253 characters. */
const maximumLength = 253 - '_svc-verify.'.length;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * The one spelling under which a host name is stored and compared: lower-case punycode without a final dot
 * (contract DOM-203, DOM-204).
 * @throws ProblemError `invalid_request` for addresses, ports, single labels, public suffixes and what is no name
 */
export function normalizeHostname(text: string, path = 'hostname'): string {
  const problem = (message: string): ProblemError => fieldProblem('invalid_request', path, message);
  // Before UTS 46, which would decode or drop some of these.
  if (!/^[a-z0-9.\-\u0080-\u{10ffff}]+$/iu.test(text)) throw problem('is not a host name');
  const ascii = domainToASCII(text).replace(/\.$/, '');
  if (ascii === '') throw problem('is not a host name');
  const { isIp, publicSuffix } = parse(ascii, { allowPrivateDomains: true });
  // The URL standard reads a last label of digits as an address, however incomplete.
  if (isIp === true || /(^|\.)[0-9]+$/.test(ascii)) throw problem('is an address, not a host name');
  if (!ascii.split('.').every((part) => label.test(part))) throw problem('is not a host name');
  if (ascii.length > maximumLength) throw problem(`is longer than ${maximumLength} characters as punycode`);
  if (!ascii.includes('.')) throw problem('has a single label');
  if (publicSuffix === ascii) throw problem('is a public suffix: nobody owns it alone');
  return ascii;
}

/** Of a token that was asked for with a `domain` which is not verified on its project. */
export const domainNotVerified = (): ProblemError =>
  new ProblemError('domain_not_verified', {
    errors: [{ path: 'domain', message: 'is not verified on this project' }],
  });
