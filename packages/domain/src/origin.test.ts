import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isOriginOf, originOfReferer } from './origin.ts';

describe('isOriginOf', () => {
  it.each([
    ['https://shop.example.com', true],
    ['https://SHOP.Example.COM', true],
    ['http://shop.example.com', false],
    ['HTTPS://shop.example.com', false],
    ['https://shop.example.com:443', false],
    ['https://shop.example.com:8443', false],
    ['https://www.shop.example.com', false],
    ['https://example.com', false],
    ['https://shop.example.com.', false],
    ['https://shop.example.com/', false],
    ['https://shop.example.com.evil.example', false],
    ['https://evilshop.example.com', false],
    ['https://shop.example.com@evil.example', false],
    ['https://user@shop.example.com', false],
    ['https://shop.example.com, https://evil.example', false],
    [' https://shop.example.com', false],
    ['//shop.example.com', false],
    ['shop.example.com', false],
    ['https://', false],
    ['null', false],
    ['', false],
  ])('%j: %s [CDN-301, CDN-302, CDN-303]', (origin, equal) => {
    expect(isOriginOf(origin, 'shop.example.com')).toBe(equal);
  });

  it('does not take a look-alike that lower-cases to ASCII', () => {
    expect(isOriginOf('https://\u212Aing.example', 'king.example')).toBe(false);
    expect(isOriginOf('https://spar\u212A.example', 'spark.example')).toBe(false);
  });

  it('looks at the whole text, whatever the domain', () => {
    expect(isOriginOf('nothing:https://a.example', 'https://a.example')).toBe(false);
  });

  it('is true for the domain in any case and for nothing else [CDN-302]', () => {
    fc.assert(
      fc.property(fc.domain(), fc.domain(), (domain, other) => {
        expect(isOriginOf(`https://${domain.toUpperCase()}`, domain)).toBe(true);
        expect(isOriginOf(`https://${other}`, domain)).toBe(other.toLowerCase() === domain.toLowerCase());
      }),
    );
  });
});

describe('originOfReferer', () => {
  it.each([
    ['https://shop.example.com/watch?v=1#t', 'https://shop.example.com'],
    ['https://shop.example.com', 'https://shop.example.com'],
    ['https://shop.example.com?x=https://evil.example/', 'https://shop.example.com'],
    ['https://shop.example.com#x/y', 'https://shop.example.com'],
    ['https://evil.example\\.shop.example.com/', 'https://evil.example'],
    ['https://shop.example.com:443/', 'https://shop.example.com:443'],
    ['https://user@shop.example.com/', 'https://user@shop.example.com'],
    ['https://shop.example.com@evil.example/', 'https://shop.example.com@evil.example'],
    ['about:blank', 'about:blank'],
    ['shop.example.com/watch', 'shop.example.com/watch'],
    ['://shop.example.com/watch', '://shop.example.com'],
    ['https:///watch', 'https://'],
    ['', ''],
  ])('%j: %j', (referer, origin) => {
    expect(originOfReferer(referer)).toBe(origin);
  });

  it('agrees with the URL standard for http and https addresses in lower case', () => {
    fc.assert(
      fc.property(fc.webUrl({ withQueryParameters: true, withFragments: true }), (url) => {
        fc.pre(url === url.toLowerCase());
        expect(originOfReferer(url)).toBe(new URL(url).origin);
      }),
    );
  });
});
