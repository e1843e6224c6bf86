import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDnsServer, type TestDnsServer } from '@millrace/testing';
import { createTxtLookup, type TxtLookup } from './txt-lookup.ts';

let dns: TestDnsServer;
/** Asks the given server, as with DNS_SERVERS. */
let direct: TxtLookup;

beforeAll(async () => {
  dns = await createTestDnsServer();
  direct = createTxtLookup({ servers: [dns.address] });
});
afterAll(() => dns.close());

describe('with servers given', () => {
  it('joins the strings of one record and keeps records apart [DOM-211]', async () => {
    dns.set('one.example', 'TXT', [['tok', 'en']]);
    dns.set('two.example', 'TXT', ['tok', 'en']);
    expect(await direct.look('one.example')).toEqual({ kind: 'answered', values: ['token'] });
    const two = await direct.look('two.example');
    expect(two).toEqual({ kind: 'answered', values: expect.arrayContaining(['tok', 'en']) as unknown });
  });

  it('asks again over TCP when the answer is truncated [DOM-212]', async () => {
    const long = Array.from({ length: 15 }, (_, i) => `${i} `.padEnd(250, 'x'));
    dns.set('long.example', 'TXT', [...long, 'svc-verify=1']);
    const answer = await direct.look('long.example');
    expect(answer).toMatchObject({ kind: 'answered' });
    expect(answer.kind === 'answered' && answer.values).toHaveLength(16);
    expect(
      dns.queries.filter((query) => query.name === 'long.example').map((query) => query.transport),
    ).toContain('tcp');
  });

  it('sees a record as soon as it is there, and that it is gone', async () => {
    expect(await direct.look('later.example')).toEqual({ kind: 'answered', values: [] });
    dns.set('later.example', 'TXT', ['here'], 3_600);
    expect(await direct.look('later.example')).toEqual({ kind: 'answered', values: ['here'] });
    dns.set('later.example', 'TXT', []);
    expect(await direct.look('later.example')).toEqual({ kind: 'answered', values: [] });
  });

  it('answers with nothing for a name that has other records only', async () => {
    dns.set('other.example', 'A', ['192.0.2.1']);
    expect(await direct.look('other.example')).toEqual({ kind: 'answered', values: [] });
  });

  it.each(['servfail', 'refused'] as const)('knows nothing when the server answers %s', async (fault) => {
    dns.fault('broken.example', fault);
    expect(await direct.look('broken.example')).toMatchObject({ kind: 'unavailable' });
    dns.fault('broken.example', null);
  });

  it('knows nothing, within its bound, when the server is silent', async () => {
    dns.fault('silent.example', 'silent');
    const hurried = createTxtLookup({ servers: [dns.address], timeoutMs: 200 });
    const startedAt = performance.now();
    expect(await hurried.look('silent.example')).toMatchObject({ kind: 'unavailable' });
    expect(performance.now() - startedAt).toBeLessThan(1_500);
  });

  it('follows an alias', async () => {
    dns.set('_svc-verify.alias.example', 'CNAME', ['target.example']);
    dns.set('target.example', 'TXT', ['there']);
    expect(await direct.look('_svc-verify.alias.example')).toEqual({ kind: 'answered', values: ['there'] });
  });
});

describe('at the zone’s own servers', () => {
  /** The resolver that knows the delegations, and two name servers on the same port of other addresses. */
  let resolver: TestDnsServer;
  let first: TestDnsServer;
  let second: TestDnsServer;
  let zone: TxtLookup;

  beforeAll(async () => {
    resolver = await createTestDnsServer();
    first = await createTestDnsServer({ host: '127.0.0.2' });
    second = await createTestDnsServer({ host: '127.0.0.3', port: first.port });
    zone = createTxtLookup({
      authorities: {
        resolvers: [resolver.address],
        port: first.port,
        allows: (address) => address !== '127.0.0.9',
      },
      timeoutMs: 4_000,
    });
    resolver.set('ns1.example', 'A', ['127.0.0.2']);
    resolver.set('ns2.example', 'A', ['127.0.0.3']);
    resolver.set('nowhere.example', 'A', ['127.0.0.9']);
    resolver.set('zone.example', 'NS', ['ns1.example']);
  });
  afterAll(() => Promise.all([resolver.close(), first.close(), second.close()]));

  it('asks the closest zone’s server and not the resolver [DOM-210]', async () => {
    resolver.set('_svc-verify.deep.zone.example', 'TXT', ['stale']);
    first.set('_svc-verify.deep.zone.example', 'TXT', ['fresh']);
    expect(await zone.look('_svc-verify.deep.zone.example')).toEqual({ kind: 'answered', values: ['fresh'] });
    expect(resolver.queries.some((query) => query.type === 'TXT')).toBe(false);
  });

  it('never asks for the servers of a top-level domain', async () => {
    await zone.look('_svc-verify.unheard.example');
    expect(resolver.queries.filter(({ type }) => type === 'NS').map(({ name }) => name)).not.toContain(
      'example',
    );
  });

  it('takes what any of the servers has: they may not yet agree', async () => {
    resolver.set('both.example', 'NS', ['ns1.example', 'ns2.example']);
    second.set('x.both.example', 'TXT', ['only here']);
    expect(await zone.look('x.both.example')).toEqual({ kind: 'answered', values: ['only here'] });
  });

  it('does without a server that is broken', async () => {
    first.fault('y.both.example', 'servfail');
    second.set('y.both.example', 'TXT', ['here']);
    expect(await zone.look('y.both.example')).toEqual({ kind: 'answered', values: ['here'] });
  });

  it('goes on to the parent when the servers of a closer zone do not answer for it', async () => {
    resolver.set('lame.zone.example', 'NS', ['ns2.example']);
    second.fault('_svc-verify.lame.zone.example', 'refused');
    first.set('_svc-verify.lame.zone.example', 'TXT', ['parent']);
    expect(await zone.look('_svc-verify.lame.zone.example')).toEqual({
      kind: 'answered',
      values: ['parent'],
    });
  });

  it('follows an alias into another zone', async () => {
    resolver.set('elsewhere.example', 'NS', ['ns2.example']);
    first.set('_svc-verify.www.zone.example', 'CNAME', ['proof.elsewhere.example']);
    second.set('proof.elsewhere.example', 'TXT', ['proof']);
    expect(await zone.look('_svc-verify.www.zone.example')).toEqual({ kind: 'answered', values: ['proof'] });
  });

  it('gives up on aliases that lead in a circle', async () => {
    first.set('a.zone.example', 'CNAME', ['b.elsewhere.example']);
    second.set('b.elsewhere.example', 'CNAME', ['a.zone.example']);
    expect(await zone.look('a.zone.example')).toEqual({
      kind: 'unavailable',
      reason: 'the name is an alias of too many others',
    });
  });

  it('asks no server at an address that is not allowed, and says that it knows nothing', async () => {
    resolver.set('inside.example', 'NS', ['nowhere.example']);
    expect(await zone.look('x.inside.example')).toMatchObject({ kind: 'unavailable' });
    expect(await zone.look('x.no-delegation.example')).toMatchObject({ kind: 'unavailable' });
  });

  it('by default allows public addresses only', async () => {
    const guarded = createTxtLookup({ authorities: { resolvers: [resolver.address], port: first.port } });
    first.set('z.zone.example', 'TXT', ['secret']);
    expect(await guarded.look('z.zone.example')).toMatchObject({ kind: 'unavailable' });
    expect(first.queries.some((query) => query.name === 'z.zone.example')).toBe(false);
  });
});
