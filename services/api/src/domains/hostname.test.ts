import { describe, expect, it } from '@jest/globals';
import { ProblemError } from '@millrace/contract';
import fc from 'fast-check';
import { normalizeHostname } from './hostname.ts';

describe('normalizeHostname', () => {
  it.each([
    ['example.com', 'example.com'],
    ['Video.Example.COM', 'video.example.com'],
    ['example.com.', 'example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['BÜCHER.example', 'xn--bcher-kva.example'],
    ['bu\u0308cher.example', 'xn--bcher-kva.example'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['XN--BCHER-KVA.example.', 'xn--bcher-kva.example'],
    ['bücher。example', 'xn--bcher-kva.example'],
    ['مثال.السعودية', 'xn--mgbh0fb.xn--mgberp4a5d4ar'],
    ['1password.com', '1password.com'],
    ['123.com', '123.com'],
    ['me.github.io', 'me.github.io'],
    ['a.b.c.d.example.co.uk', 'a.b.c.d.example.co.uk'],
  ])('%j is stored as %s [DOM-203]', (text, expected) => {
    expect(normalizeHostname(text)).toBe(expected);
  });

  it.each([
    ['', 'is not a host name'],
    ['.', 'is not a host name'],
    ['com', 'has a single label'],
    ['localhost', 'has a single label'],
    ['com.', 'has a single label'],
    ['co.uk', 'is a public suffix: nobody owns it alone'],
    ['github.io', 'is a public suffix: nobody owns it alone'],
    ['127.0.0.1', 'is an address, not a host name'],
    ['127.1', 'is an address, not a host name'],
    ['2130706433', 'is an address, not a host name'],
    ['１２７.0.0.1', 'is an address, not a host name'],
    ['0x7f.1', 'is an address, not a host name'],
    ['example.123', 'is not a host name'],
    ['[::1]', 'is not a host name'],
    ['::1', 'is not a host name'],
    ['example.com:443', 'is not a host name'],
    ['https://example.com', 'is not a host name'],
    ['example.com/path', 'is not a host name'],
    ['user@example.com', 'is not a host name'],
    ['*.example.com', 'is not a host name'],
    ['exa mple.com', 'is not a host name'],
    [' example.com', 'is not a host name'],
    ['example.com\n', 'is not a host name'],
    ['ex%61mple.com', 'is not a host name'],
    ['under_score.com', 'is not a host name'],
    ['-a.example.com', 'is not a host name'],
    ['a-.example.com', 'is not a host name'],
    ['a..example.com', 'is not a host name'],
    ['.example.com', 'is not a host name'],
    ['example.com..', 'is not a host name'],
    [`${'a'.repeat(64)}.example.com`, 'is not a host name'],
    ['xn--bcher-kva\u00ad.example\u2028', 'is not a host name'],
    [`${'a.'.repeat(130)}example.com`, 'is longer than 241 characters as punycode'],
  ])('%j %s [DOM-204]', (text, message) => {
    expect(() => normalizeHostname(text)).toThrow(
      expect.objectContaining({ code: 'invalid_request', errors: [{ path: 'hostname', message }] }),
    );
  });

  it('leaves what it made as it is, whatever it is made from', () => {
    const label = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(fc.array(label, { minLength: 1, maxLength: 4 }), (labels) => {
        let once: string;
        try {
          once = normalizeHostname(labels.join('.'));
        } catch (error) {
          return error instanceof ProblemError;
        }
        return normalizeHostname(once) === once && /^[a-z0-9.-]+\.[a-z0-9.-]+$/.test(once);
      }),
      { numRuns: 2_000 },
    );
  });
});
