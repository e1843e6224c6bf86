import { createDnsServer, type DnsQuery, type DnsServer } from '@millrace/embedded/dns-server';

export interface TestDnsServer extends DnsServer {
  /** Every query so far, oldest first. */
  readonly queries: readonly DnsQuery[];
  /** Answers each query of a name's addresses with the next of these sets, TTL 0; the last one stays. */
  rebind(name: string, type: 'A' | 'AAAA', sets: readonly (readonly string[])[]): void;
}

/** The development DNS server, on a free loopback port unless told, which remembers what it was asked. */
export async function createTestDnsServer(
  options: { host?: string; port?: number } = {},
): Promise<TestDnsServer> {
  const queries: DnsQuery[] = [];
  const coming = new Map<string, (readonly string[])[]>();
  const server = await createDnsServer({
    ...options,
    onQuery: (query) => {
      queries.push(query);
      const { name, type } = query;
      const next = coming.get(`${name} ${type}`)?.shift();
      if (next !== undefined && (type === 'A' || type === 'AAAA')) server.set(name, type, next, 0);
    },
  });
  return {
    ...server,
    queries,
    rebind: (name, type, sets) => coming.set(`${name.toLowerCase()} ${type}`, [...sets]),
  };
}
