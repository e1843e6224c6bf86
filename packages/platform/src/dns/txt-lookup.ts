import { Resolver } from 'node:dns/promises';
import { isIPv6 } from 'node:net';
import { isPublicAddress } from './public-address.ts';

/** What the DNS says of a name's TXT records. */
export type TxtAnswer =
  /** Asked and answered: every record with its strings joined (RFC 7208 §3.3 joins them so too); none is empty. */
  | { kind: 'answered'; values: readonly string[] }
  /** Nobody who should know could be asked: proves neither presence nor absence. */
  | { kind: 'unavailable'; reason: string };

export interface TxtLookup {
  /** Never rejects, and takes no longer than its bound. */
  look(name: string): Promise<TxtAnswer>;
}

export interface TxtLookupOptions {
  /** `host:port` of the servers to ask, instead of the zone's own. */
  servers?: readonly string[] | undefined;
  /** Everything together, in milliseconds; 10 s unless told. */
  timeoutMs?: number;
  /** How the zone's own servers are found and reached; for tests, which have no internet. */
  authorities?: {
    /** Resolvers that answer NS and address look-ups; the machine's unless told. */
    resolvers?: readonly string[];
    port?: number;
    allows?: (address: string) => boolean;
  };
}

const defaultTimeoutMs = 10_000;
/** One try of one server; a server is tried twice. */
const tryMs = 2_000;
/** Servers of one zone that are asked; they should all say the same. */
const maximumServers = 4;
const maximumAliases = 4;

/**
 * Looks TXT records up where they are kept: at the zone's own servers, past every cache, so that a record counts
 * as soon as it is there (a resolver would remember for the zone's negative TTL that it was not). Truncated
 * answers are asked for again over TCP (RFC 7766 §5; c-ares does it).
 */
export function createTxtLookup(options: TxtLookupOptions = {}): TxtLookup {
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  return {
    async look(name) {
      const session = new LookupSession(options);
      const timer = setTimeout(() => {
        session.cancel();
      }, timeoutMs);
      try {
        return await session.look(name);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** The resolvers of one look-up, which can all be cancelled at once. */
class LookupSession {
  readonly #options: TxtLookupOptions;
  readonly #resolvers = new Set<Resolver>();
  #cancelled = false;

  constructor(options: TxtLookupOptions) {
    this.#options = options;
  }

  cancel(): void {
    this.#cancelled = true;
    for (const resolver of this.#resolvers) resolver.cancel();
  }

  async look(name: string): Promise<TxtAnswer> {
    let target = name;
    for (let aliases = 0; aliases <= maximumAliases; aliases++) {
      const answer = await this.#lookOnce(target);
      if (answer.kind !== 'alias') return answer;
      target = answer.target;
    }
    return { kind: 'unavailable', reason: 'the name is an alias of too many others' };
  }

  async #lookOnce(name: string): Promise<TxtAnswer | { kind: 'alias'; target: string }> {
    const { servers } = this.#options;
    if (servers !== undefined && servers.length > 0) return this.#ask([servers], name);
    let answer: TxtAnswer | { kind: 'alias'; target: string } = {
      kind: 'unavailable',
      reason: 'no name server of the zone was found',
    };
    // From the name itself upwards: the closest zone that answers is the one that holds it.
    for (const zone of zonesOf(name)) {
      if (this.#cancelled) break;
      const addresses = await this.#serversOf(zone);
      if (addresses.length === 0) continue;
      answer = await this.#ask(
        addresses.map((address) => [address]),
        name,
      );
      if (answer.kind !== 'unavailable') break;
    }
    return answer;
  }

  /** Asks each group of servers on its own; what one of them holds, counts. */
  async #ask(
    groups: readonly (readonly string[])[],
    name: string,
  ): Promise<TxtAnswer | { kind: 'alias'; target: string }> {
    const answers = await Promise.all(groups.map((servers) => this.#askGroup(servers, name)));
    const values = answers.flatMap((answer) => (answer.kind === 'answered' ? answer.values : []));
    if (values.length > 0) return { kind: 'answered', values: [...new Set(values)] };
    return (
      answers.find((answer) => answer.kind === 'alias') ??
      answers.find((answer) => answer.kind === 'answered') ??
      answers[0] ?? { kind: 'unavailable', reason: 'no server to ask' }
    );
  }

  async #askGroup(
    servers: readonly string[],
    name: string,
  ): Promise<TxtAnswer | { kind: 'alias'; target: string }> {
    const resolver = this.#resolver(servers);
    try {
      const records = await resolver.resolveTxt(name);
      return { kind: 'answered', values: records.map((strings) => strings.join('')) };
    } catch (error) {
      if (!isNegative(error)) return { kind: 'unavailable', reason: reasonOf(error) };
    }
    // A server that holds the alias but not its target answers with the alias alone.
    const target = await resolver.resolveCname(name).then(
      ([first]) => first,
      () => undefined,
    );
    return target === undefined ? { kind: 'answered', values: [] } : { kind: 'alias', target };
  }

  async #serversOf(zone: string): Promise<string[]> {
    const { resolvers = [], port = 53, allows = isPublicAddress } = this.#options.authorities ?? {};
    const resolver = this.#resolver(resolvers);
    const names = await resolver.resolveNs(zone).catch(() => []);
    const found = await Promise.all(
      names
        .slice(0, maximumServers)
        .flatMap((name) => [
          resolver.resolve4(name).catch(() => []),
          resolver.resolve6(name).catch(() => []),
        ]),
    );
    // IPv4 first, one address of each server before the second of any: some of these hosts have no IPv6.
    const addresses = [...found.filter((_, i) => i % 2 === 0), ...found.filter((_, i) => i % 2 === 1)]
      .flat()
      .filter(allows);
    return addresses
      .slice(0, maximumServers)
      .map((address) => (isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`));
  }

  #resolver(servers: readonly string[]): Resolver {
    const resolver = new Resolver({ timeout: tryMs, tries: 2 });
    if (servers.length > 0) resolver.setServers(servers);
    this.#resolvers.add(resolver);
    return resolver;
  }
}

/** The name and its parents, but no single label: a top-level domain's servers are not asked. */
function zonesOf(name: string): string[] {
  const labels = name.split('.');
  return labels.slice(0, -1).map((_, i) => labels.slice(i).join('.'));
}

const isNegative = (error: unknown): boolean => ['ENODATA', 'ENOTFOUND'].includes(reasonOf(error));

const reasonOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'failed';
