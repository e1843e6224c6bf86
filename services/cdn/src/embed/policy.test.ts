import { describe, expect, it } from '@jest/globals';
import { policyHeaders } from './policy.ts';

const headersOf = (domain: string | null, logoUrl: string | null): Record<string, string> => {
  const flat = policyHeaders({ domain, logoUrl }).map(String);
  return Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] ?? '']] : [])));
};
const policyOf = (domain: string | null, logoUrl: string | null): string[] =>
  headersOf(domain, logoUrl)['Content-Security-Policy']?.split('; ') ?? [];
const within = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
];

describe('the headers of a page', () => {
  it('let the token’s domain frame it, and nobody without one', () => {
    expect(policyOf('shop.example.com', null)).toEqual([
      ...within,
      'frame-ancestors https://shop.example.com',
    ]);
    expect(policyOf(null, null)).toEqual([...within, "frame-ancestors 'none'"]);
  });

  it.each([
    ['https://logo.example/a.svg?b#c', 'https://logo.example'],
    ['https://LOGO.example:8443/', 'https://logo.example:8443'],
    ['https://a-1.example/', 'https://a-1.example'],
  ])('let the logo %s be had from its host', (logoUrl, origin) => {
    expect(policyOf(null, logoUrl)[3]).toBe(`img-src 'self' ${origin}`);
  });

  it.each([
    '',
    'logo',
    'http://logo.example/',
    'https://a;b.example/',
    'https://a*b/',
    'https://a,b/',
    'data:image/png,x',
  ])('say nothing more for the logo %j', (logoUrl) => {
    expect(policyOf(null, logoUrl)[3]).toBe("img-src 'self'");
  });

  it('keep the referrer’s host and take away what a player does not need', () => {
    expect(headersOf(null, null)).toMatchObject({
      'Referrer-Policy': 'strict-origin',
      'Permissions-Policy':
        'camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), midi=()',
    });
  });
});
