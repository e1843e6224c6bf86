import { describe, expect, it } from '@jest/globals';
import { networkOf, type Party } from './network-policy.ts';

const pod = (labels: Record<string, string>, namespace = 'media'): Party => ({
  ...{ namespace, labels, ports: { http: 8080 } },
});
const a = pod({ app: 'a' });
const b = pod({ app: 'b' });
const outside: Party = { address: '192.0.2.1' };

const policy = (spec: object) => ({
  ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'p' } },
  spec: { podSelector: { matchLabels: { app: 'a' } }, ...spec },
});
const to = (...egress: object[]) => networkOf([policy({ policyTypes: ['Egress'], egress })], 'media');
const from = (...ingress: object[]) => networkOf([policy({ policyTypes: ['Ingress'], ingress })], 'media');

describe('what network policies allow', () => {
  it('is everything for a pod that none selects in that direction', () => {
    expect(to()({ from: b, to: a, port: 1 })).toBe(true);
    expect(to()({ from: a, to: b, port: 1 })).toBe(false);
    expect(from()({ from: a, to: b, port: 1 })).toBe(true);
    expect(from()({ from: b, to: a, port: 1 })).toBe(false);
    expect(to()({ from: pod({ app: 'a' }, 'other'), to: b, port: 1 })).toBe(true);
  });

  it('needs the word of both ends', () => {
    const both = networkOf(
      [
        policy({ policyTypes: ['Egress'], egress: [{}] }),
        policy({ podSelector: {}, policyTypes: ['Ingress'], ingress: [] }),
      ],
      'media',
    );
    expect(both({ from: a, to: b, port: 1 })).toBe(false);
    expect(both({ from: a, to: outside, port: 1 })).toBe(true);
  });

  it('is what any policy names', () => {
    const ports = (port: number) => policy({ policyTypes: ['Egress'], egress: [{ ports: [{ port }] }] });
    const two = networkOf([ports(1), ports(2)], 'media');
    expect([1, 2, 3].map((port) => two({ from: a, to: b, port }))).toEqual([true, true, false]);
  });

  it('goes by port, its name at whoever is called, its range and its protocol', () => {
    const allowed = (port: object, call: { port: number; protocol?: 'UDP' }) =>
      to({ ports: [port] })({ from: a, to: b, ...call });
    expect(allowed({ port: 'http' }, { port: 8080 })).toBe(true);
    expect(allowed({ port: 'http' }, { port: 80 })).toBe(false);
    expect(allowed({ port: 5, endPort: 7 }, { port: 7 })).toBe(true);
    expect(allowed({ port: 5, endPort: 7 }, { port: 8 })).toBe(false);
    expect(allowed({ port: 53, protocol: 'UDP' }, { port: 53 })).toBe(false);
    expect(allowed({ port: 53, protocol: 'UDP' }, { port: 53, protocol: 'UDP' })).toBe(true);
    expect(to({ ports: [{ port: 'http' }] })({ from: a, to: outside, port: 8080 })).toBe(false);
  });

  it('goes by labels in its own namespace, and in others only where it names them', () => {
    const c = pod({ app: 'c' }, 'other');
    const other = { matchLabels: { 'kubernetes.io/metadata.name': 'other' } };
    const reached = (peer: object, party: Party) => from({ from: [peer] })({ from: party, to: a, port: 1 });
    expect(reached({ podSelector: {} }, b)).toBe(true);
    expect(reached({ podSelector: {} }, c)).toBe(false);
    expect(reached({ podSelector: { matchLabels: { app: 'x' } } }, b)).toBe(false);
    expect(reached({ namespaceSelector: other }, c)).toBe(true);
    expect(reached({ namespaceSelector: other }, b)).toBe(false);
    expect(reached({ namespaceSelector: other, podSelector: { matchLabels: { app: 'x' } } }, c)).toBe(false);
    expect(reached({ namespaceSelector: {} }, outside)).toBe(false);
  });

  it('goes by blocks of addresses, but for those that they except', () => {
    const block = (cidr: string, except: string[]) => to({ to: [{ ipBlock: { cidr, except } }] });
    const all = block('0.0.0.0/0', ['10.0.0.0/8']);
    expect(all({ from: a, to: outside, port: 1 })).toBe(true);
    expect(all({ from: a, to: { address: '10.1.2.3' }, port: 1 })).toBe(false);
    expect(all({ from: a, to: { address: '2001:db8::1' }, port: 1 })).toBe(false);
    expect(all({ from: a, to: b, port: 1 })).toBe(false);
    expect(block('::/0', ['fc00::/7'])({ from: a, to: { address: 'fd00::1' }, port: 1 })).toBe(false);
  });
});
