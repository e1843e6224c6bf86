import { BlockList, isIPv6 } from 'node:net';
import { type AnyObject, ofKind, selects } from './objects.ts';

/** Somebody who calls or is called: a pod with its labels and ports by name, or an address outside of the cluster. */
export type Party =
  | { namespace: string; labels: Readonly<Record<string, string>>; ports: Readonly<Record<string, number>> }
  | { address: string };

export interface Connection {
  from: Party;
  to: Party;
  port: number;
  protocol?: 'TCP' | 'UDP';
}

interface Selector {
  matchLabels?: Record<string, string>;
  matchExpressions?: unknown[];
}
interface Peer {
  podSelector?: Selector;
  namespaceSelector?: Selector;
  ipBlock?: { cidr: string; except?: string[] };
}
interface Rule {
  ports?: { port?: number | string; endPort?: number; protocol?: string }[];
  from?: Peer[];
  to?: Peer[];
}
interface PolicySpec {
  podSelector: Selector;
  policyTypes: string[];
  ingress?: Rule[];
  egress?: Rule[];
}
type Direction = 'ingress' | 'egress';

/**
 * Says of connections whether the NetworkPolicies among these objects allow them, both where they begin and where they
 * end, as Kubernetes defines it (networking.k8s.io/v1): a pod that a policy of a direction selects may do in that
 * direction what any of them names, and nothing else. It knows labels of namespaces by the one that Kubernetes gives
 * all of them, their name.
 *
 * @param namespace of the objects
 * @throws Error at a selector by expressions, of which the chart has none
 */
export function networkOf(objects: readonly AnyObject[], namespace: string): (call: Connection) => boolean {
  const policies = ofKind(objects, 'NetworkPolicy').map(({ spec }) => spec as PolicySpec);
  const allows = (direction: Direction, call: Connection): boolean => {
    const own = direction === 'egress' ? call.from : call.to;
    if ('address' in own || own.namespace !== namespace) return true;
    const type = direction === 'egress' ? 'Egress' : 'Ingress';
    const binding = policies.filter(
      ({ podSelector, policyTypes }) => policyTypes.includes(type) && matches(podSelector, own.labels),
    );
    if (binding.length === 0) return true;
    return binding.some((policy) =>
      (policy[direction] ?? []).some((rule) => namesPort(rule, call) && namesPeer(rule, direction, call)),
    );
  };
  const namesPeer = (rule: Rule, direction: Direction, call: Connection): boolean => {
    const peers = direction === 'egress' ? rule.to : rule.from;
    const other = direction === 'egress' ? call.to : call.from;
    return peers === undefined || peers.length === 0 || peers.some((peer) => isPeer(peer, other));
  };
  const isPeer = ({ podSelector, namespaceSelector, ipBlock }: Peer, party: Party): boolean => {
    if ('address' in party) return ipBlock !== undefined && isWithin(ipBlock, party.address);
    // Addresses of pods are the cluster's own business: a block is never meant for one.
    if (ipBlock !== undefined) return false;
    const there =
      namespaceSelector === undefined
        ? party.namespace === namespace
        : matches(namespaceSelector, { 'kubernetes.io/metadata.name': party.namespace });
    return there && matches(podSelector ?? {}, party.labels);
  };
  return (call) => allows('egress', call) && allows('ingress', call);
}

/** A name is that of the port of whoever is called. */
function namesPort({ ports }: Rule, { to, port, protocol = 'TCP' }: Connection): boolean {
  if (ports === undefined || ports.length === 0) return true;
  return ports.some((named) => {
    if ((named.protocol ?? 'TCP') !== protocol) return false;
    if (named.port === undefined) return true;
    if (typeof named.port === 'string') return !('address' in to) && to.ports[named.port] === port;
    return named.port <= port && port <= (named.endPort ?? named.port);
  });
}

function matches(selector: Selector, labels: Readonly<Record<string, string>>): boolean {
  if (selector.matchExpressions !== undefined) throw new Error('selectors by expressions are not understood');
  return selects(selector.matchLabels ?? {}, labels);
}

function isWithin({ cidr, except = [] }: { cidr: string; except?: string[] }, address: string): boolean {
  const family = isIPv6(address) ? 'ipv6' : 'ipv4';
  const holds = (block: string): boolean => {
    const [net = '', prefix] = block.split('/');
    if (isIPv6(net) !== (family === 'ipv6')) return false;
    const list = new BlockList();
    list.addSubnet(net, Number(prefix), family);
    return list.check(address, family);
  };
  return holds(cidr) && !except.some(holds);
}
