import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isLoopbackAddress, isPublicAddress } from './public-address.ts';

/**
 * Every range that is not, or not certainly, global unicast, written down from the RFCs: IANA's special-purpose
 * registries for IPv4 and IPv6, multicast, and what is not given out.
 */
const special4 = {
  '0.0.0.0/8': 'this network, RFC 791',
  '10.0.0.0/8': 'private, RFC 1918',
  '100.64.0.0/10': 'carrier-grade NAT, RFC 6598',
  '127.0.0.0/8': 'loopback, RFC 1122',
  '169.254.0.0/16': 'link-local, RFC 3927; metadata services',
  '172.16.0.0/12': 'private, RFC 1918',
  '192.0.0.0/24': 'IETF protocol assignments, RFC 6890',
  '192.0.2.0/24': 'documentation, RFC 5737',
  '192.31.196.0/24': 'AS112, RFC 7535',
  '192.52.193.0/24': 'AMT, RFC 7450',
  '192.88.99.0/24': '6to4 relay anycast, RFC 7526',
  '192.168.0.0/16': 'private, RFC 1918',
  '192.175.48.0/24': 'AS112, RFC 7534',
  '198.18.0.0/15': 'benchmarking, RFC 2544',
  '198.51.100.0/24': 'documentation, RFC 5737',
  '203.0.113.0/24': 'documentation, RFC 5737',
  '224.0.0.0/4': 'multicast, RFC 5771',
  '240.0.0.0/4': 'reserved, RFC 1112, and broadcast, RFC 919',
  '168.63.129.16/32': 'Azure’s metadata and agent endpoint',
};
const special6 = {
  '::/128': 'unspecified, RFC 4291',
  '::1/128': 'loopback, RFC 4291',
  '::/96': 'IPv4-compatible, RFC 4291',
  '::ffff:0:0/96': 'IPv4-mapped, RFC 4291',
  '::ffff:0:0:0/96': 'IPv4-translated, RFC 2765',
  '64:ff9b::/96': 'NAT64, RFC 6052',
  '64:ff9b:1::/48': 'local NAT64, RFC 8215',
  '100::/64': 'discard, RFC 6666',
  '100:0:0:1::/64': 'dummy prefix, RFC 9780',
  '2001::/32': 'Teredo, RFC 4380',
  '2001::/23': 'IETF protocol assignments, RFC 2928',
  '2001:1::1/128': 'port control protocol anycast, RFC 7723',
  '2001:2::/48': 'benchmarking, RFC 5180',
  '2001:3::/32': 'AMT, RFC 7450',
  '2001:4:112::/48': 'AS112, RFC 7535',
  '2001:10::/28': 'ORCHID, RFC 4843',
  '2001:20::/28': 'ORCHIDv2, RFC 7343',
  '2001:30::/28': 'drone remote identification, RFC 9374',
  '2001:db8::/32': 'documentation, RFC 3849',
  '2002::/16': '6to4, RFC 3056',
  '2620:4f:8000::/48': 'AS112, RFC 7534',
  '3fff::/20': 'documentation, RFC 9637',
  '4000::/2': 'not given out',
  '5f00::/16': 'segment routing identifiers, RFC 9602',
  '8000::/1': 'not given out, unique local, link-local and multicast',
  'fc00::/7': 'unique local, RFC 4193',
  'fd00:ec2::254/128': 'a metadata service',
  'fe80::/10': 'link-local, RFC 4291',
  'fec0::/10': 'site-local, RFC 3879',
  'ff00::/8': 'multicast, RFC 4291',
};

interface Range {
  first: bigint;
  last: bigint;
}
const bits = { 4: 32, 6: 128 } as const;
type Family = keyof typeof bits;

/** Arithmetic of this test's own, so that it does not trust the library it tests. */
function toNumber(address: string): bigint {
  if (!address.includes(':')) return address.split('.').reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);
  const [head = '', tail = ''] = address.split('::');
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const gap = 8 - groups(head).length - groups(tail).length;
  const all = [...groups(head), ...Array.from({ length: gap }, () => '0'), ...groups(tail)];
  return all.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n);
}
function toRange(text: string, family: Family): Range {
  const [network = '', prefix] = text.split('/');
  const first = toNumber(network);
  return { first, last: first + (1n << BigInt(bits[family] - Number(prefix))) - 1n };
}
const groupsOf = (value: bigint): bigint[] =>
  Array.from({ length: 8 }, (_, i) => (value >> BigInt(112 - 16 * i)) & 0xffffn);
const plain4 = (value: bigint): string =>
  Array.from({ length: 4 }, (_, i) => (value >> BigInt(24 - 8 * i)) & 0xffn).join('.');
const plain6 = (value: bigint): string =>
  new URL(`https://[${spellings6(value)[0] ?? ''}]`).hostname.slice(1, -1);
/** Every way in which RFC 4291 §2.2 lets one write an address. */
const spellings6 = (value: bigint): string[] => {
  const groups = groupsOf(value);
  const short = groups.map((group) => group.toString(16));
  const long = short.map((group) => group.padStart(4, '0'));
  return [
    short.join(':'),
    long.join(':'),
    long.join(':').toUpperCase(),
    `${long.slice(0, 6).join(':')}:${plain4(value & 0xffffffffn)}`,
  ];
};
/** What people write for an IPv4 address, and the URL standard understands. */
const spellings4 = (value: bigint): string[] => {
  const parts = plain4(value).split('.').map(Number);
  const [a = 0, b = 0, c = 0, d = 0] = parts;
  return [
    plain4(value),
    String(value),
    `0x${value.toString(16)}`,
    `0${value.toString(8)}`,
    parts.map((part) => `0x${part.toString(16)}`).join('.'),
    parts.map((part) => `0${part.toString(8)}`).join('.'),
    `${a}.${b}.${c * 256 + d}`,
    `${a}.${b * 65_536 + c * 256 + d}`,
    `${plain4(value)}.`,
    plain4(value).replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
    plain4(value).replaceAll('.', '。'),
  ];
};
const hostOf = (spelling: string): string => new URL(`https://${spelling}/`).hostname;

/** The edges of a range more often than its middle. */
const within = ({ first, last }: Range): fc.Arbitrary<bigint> =>
  fc.oneof(fc.constantFrom(first, last), fc.bigInt({ min: first, max: last }));
const ranges = (table: Record<string, string>, family: Family): Range[] =>
  Object.keys(table).map((text) => toRange(text, family));
const outsideOf =
  (special: readonly Range[]) =>
  (value: bigint): boolean =>
    !special.some(({ first, last }) => value >= first && value <= last);

describe('a special range of IPv4', () => {
  it.each(Object.entries(special4))('%s is refused in every spelling (%s)', (range) => {
    fc.assert(
      fc.property(within(toRange(range, 4)), (value) => {
        for (const spelling of spellings4(value))
          expect([spelling, isPublicAddress(hostOf(spelling))]).toEqual([spelling, false]);
      }),
    );
  });

  it('is refused inside IPv6 too, however it is carried', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 0xffffffffn }), (value) => {
        for (const prefix of ['::', '::ffff:0:0', '::ffff:0:0:0', '64:ff9b::', '64:ff9b:1::']) {
          for (const spelling of spellings6(toNumber(prefix) | value))
            expect(isPublicAddress(spelling)).toBe(false);
        }
        expect(isPublicAddress(plain6(toNumber('2002::') | (value << 80n)))).toBe(false);
        expect(isPublicAddress(plain6(toNumber('2001::') | (value ^ 0xffffffffn)))).toBe(false);
      }),
    );
  });
});

describe('a special range of IPv6', () => {
  it.each(Object.entries(special6))('%s is refused in every spelling (%s)', (range) => {
    fc.assert(
      fc.property(within(toRange(range, 6)), (value) => {
        for (const spelling of [...spellings6(value), plain6(value)]) {
          expect([spelling, isPublicAddress(spelling)]).toEqual([spelling, false]);
        }
      }),
    );
  });
});

describe('global unicast', () => {
  const global4 = fc.bigInt({ min: 0n, max: 0xffffffffn }).filter(outsideOf(ranges(special4, 4)));
  const global6 = within(toRange('2000::/3', 6)).filter(outsideOf(ranges(special6, 6)));

  it('of IPv4 is public, in every spelling that a URL may have', () => {
    fc.assert(
      fc.property(global4, (value) => {
        for (const spelling of spellings4(value))
          expect([spelling, isPublicAddress(hostOf(spelling))]).toEqual([spelling, true]);
      }),
    );
  });

  it('of IPv6 is public', () => {
    fc.assert(
      fc.property(global6, (value) => {
        for (const spelling of spellings6(value))
          expect([spelling, isPublicAddress(spelling)]).toEqual([spelling, true]);
      }),
    );
  });

  it.each(['4', '6'] as const)('of IPv%s begins and ends right beside each special range', (text) => {
    const family = Number(text) as Family;
    const table = ranges(family === 4 ? special4 : special6, family);
    const isGlobal = outsideOf(table);
    const inGlobal6 = (value: bigint): boolean => value >> 125n === 1n;
    for (const { first, last } of table) {
      for (const value of [first - 1n, last + 1n]) {
        if (value < 0n || value >= 1n << BigInt(bits[family])) continue;
        const address = family === 4 ? plain4(value) : plain6(value);
        expect([address, isPublicAddress(address)]).toEqual([
          address,
          isGlobal(value) && (family === 4 || inGlobal6(value)),
        ]);
      }
    }
  });
});

it.each([
  '',
  'localhost',
  '1.2.3',
  '8.8.8.8 ',
  '2001:4860::8888%eth0',
  '[2001:4860::8888]',
  '08.8.8.8',
  '0x8.8.8.8',
])('%j is no address in its plain spelling, so not public', (text) =>
  expect(isPublicAddress(text)).toBe(false),
);

describe('loopback', () => {
  it.each(['127.0.0.1', '127.255.255.255', '::1'])('%s is this machine', (address) =>
    expect(isLoopbackAddress(address)).toBe(true),
  );
  it.each(['0.0.0.0', '::', '10.0.0.1', '::ffff:127.0.0.1', '8.8.8.8', 'localhost', '127.1', ''])(
    '%j is not known to be',
    (address) => expect(isLoopbackAddress(address)).toBe(false),
  );
});
