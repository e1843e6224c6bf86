import { createDnsServer, type DnsQuery, type DnsServer } from '@millrace/embedded/dns-server';

export interface TestDnsServer extends DnsServer {
  /** Every query so far, oldest first. */
  readonly queries: readonly DnsQuery[];
}

/** The development DNS server, on a free loopback port unless told, which remembers what it was asked. */
export async function createTestDnsServer(
  options: { host?: string; port?: number } = {},
): Promise<TestDnsServer> {
  const queries: DnsQuery[] = [];
  const server = await createDnsServer({ ...options, onQuery: (query) => queries.push(query) });
  return { ...server, queries };
}
