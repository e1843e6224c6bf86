import { describe, expect, it } from '@jest/globals';
import { clientIp, clientNetwork } from './client-ip.ts';

describe('clientIp', () => {
  it.each([
    ['no proxy is trusted', '198.51.100.1', 0, '10.0.0.9'],
    ['one is: what it saw', '6.6.6.6, 198.51.100.1', 1, '198.51.100.1'],
    ['two are: what the outer one saw', '6.6.6.6, 198.51.100.1, 10.0.0.2', 2, '198.51.100.1'],
    ['more than there are', '198.51.100.1', 3, '198.51.100.1'],
    ['an empty header', '', 1, '10.0.0.9'],
    ['no header', null, 1, '10.0.0.9'],
  ])('when %s [RAT-007]', (_what, forwardedFor, trusted, expected) => {
    expect(clientIp('10.0.0.9', forwardedFor, trusted)).toBe(expected);
  });
});

describe('clientNetwork', () => {
  it.each([
    ['198.51.100.1', '198.51.100.1'],
    ['::ffff:198.51.100.1', '198.51.100.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:ffff::', '2001:db8:1:2::/64'],
    ['2001:0DB8:1:2::1', '2001:db8:1:2::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['not an address', 'not an address'],
  ])('of %s is %s [RAT-006]', (address, network) => {
    expect(clientNetwork(address)).toBe(network);
  });
});
