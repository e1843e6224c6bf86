import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { decode, type DecodedPacket, encode, type Packet, streamEncode } from 'dns-packet';
import fc from 'fast-check';
import { createDnsServer, type DnsQuery, type DnsServer } from './dns-server.ts';

let server: DnsServer;
let resolver: Resolver;
const queries: DnsQuery[] = [];

beforeEach(async () => {
  queries.length = 0;
  server = await createDnsServer({ onQuery: (query) => queries.push(query) });
  resolver = new Resolver({ timeout: 1_000, tries: 1 });
  resolver.setServers([server.address]);
});
afterEach(() => server.close());

async function askUdp(packet: Packet | Buffer): Promise<DecodedPacket> {
  const socket = createSocket('udp4');
  try {
    socket.send(Buffer.isBuffer(packet) ? packet : encode(packet), server.port, '127.0.0.1');
    const [message] = (await once(socket, 'message')) as [Buffer];
    return decode(message);
  } finally {
    socket.close();
  }
}
const txtQuery: Packet = { type: 'query', id: 7, questions: [{ type: 'TXT', name: 'Long.Example.com' }] };

describe('records', () => {
  it('are answered by type, without case, and can change at any time', async () => {
    server.set('_svc-verify.example.com', 'TXT', ['svc-verify=1', 'other']);
    server.set('example.com', 'A', ['192.0.2.1']);
    server.set('example.com', 'NS', ['ns1.example.com']);
    expect(await resolver.resolveTxt('_SVC-verify.example.COM')).toEqual([['svc-verify=1'], ['other']]);
    expect(await resolver.resolve4('example.com', { ttl: true })).toEqual([{ address: '192.0.2.1', ttl: 1 }]);
    expect(await resolver.resolveNs('example.com')).toEqual(['ns1.example.com']);
    server.set('_svc-verify.example.com', 'TXT', ['svc-verify=2'], 300);
    expect(await resolver.resolveTxt('_svc-verify.example.com')).toEqual([['svc-verify=2']]);
    server.set('_svc-verify.example.com', 'TXT', []);
    await expect(resolver.resolveTxt('_svc-verify.example.com')).rejects.toMatchObject({ code: 'ENOTFOUND' });
  });

  it('follow an alias, and end on a loop of aliases', async () => {
    server.set('www.example.com', 'CNAME', ['example.com']);
    server.set('example.com', 'A', ['192.0.2.1']);
    expect(await resolver.resolve4('www.example.com')).toEqual(['192.0.2.1']);
    server.set('a.example.com', 'CNAME', ['b.example.com']);
    server.set('b.example.com', 'CNAME', ['a.example.com']);
    expect(await resolver.resolve4('a.example.com')).toEqual([]);
  });

  it('split a text over 255 bytes into strings of one record', async () => {
    server.set('long.example.com', 'TXT', ['x'.repeat(300)]);
    expect(await resolver.resolveTxt('long.example.com')).toEqual([['x'.repeat(255), 'x'.repeat(45)]]);
  });
});

describe('negative answers', () => {
  it('tell a missing name from a missing type, with the zone’s start of authority', async () => {
    server.set('example.com', 'NS', ['ns1.example.com']);
    server.set('deep.sub.example.com', 'A', ['192.0.2.1']);
    const missing = await askUdp({ questions: [{ type: 'TXT', name: 'no.example.com' }] });
    expect(missing).toMatchObject({ rcode: 'NXDOMAIN', flag_aa: true });
    expect(missing.authorities).toMatchObject([{ type: 'SOA', name: 'example.com', data: { minimum: 1 } }]);
    // sub.example.com exists, because a name below it does.
    const empty = await askUdp({ questions: [{ type: 'TXT', name: 'sub.example.com' }] });
    expect(empty).toMatchObject({ rcode: 'NOERROR', answers: [] });
    expect(empty.authorities).toMatchObject([{ type: 'SOA', name: 'example.com' }]);
    // notexample.com only looks like something below example.com.
    expect(await askUdp({ questions: [{ type: 'NS', name: 'notexample.com' }] })).toMatchObject({
      rcode: 'NXDOMAIN',
      authorities: [{ name: '.' }],
    });
  });
});

describe('an answer too long for UDP', () => {
  beforeEach(() => server.set('long.example.com', 'TXT', ['x'.repeat(600)]));

  it('is truncated and then asked for over TCP', async () => {
    const cut = await askUdp(txtQuery);
    expect(cut).toMatchObject({
      id: 7,
      flag_tc: true,
      answers: [],
      questions: [{ name: 'Long.Example.com' }],
    });
    const text = (await resolver.resolveTxt('long.example.com')).flat().join('');
    expect(text).toBe('x'.repeat(600));
  });

  it('comes over UDP to a client whose EDNS says that it has room', async () => {
    const room: Packet['additionals'] = [
      {
        type: 'OPT',
        name: '.',
        udpPayloadSize: 4096,
        extendedRcode: 0,
        ednsVersion: 0,
        flags: 0,
        flag_do: false,
        options: [],
      },
    ];
    const whole = await askUdp({ ...txtQuery, additionals: room });
    expect(whole.answers).toHaveLength(1);
    expect(whole.additionals).toMatchObject([{ type: 'OPT', udpPayloadSize: 1232 }]);
    server.set('long.example.com', 'TXT', ['x'.repeat(1_300)]);
    expect(await askUdp({ ...txtQuery, additionals: room })).toMatchObject({ flag_tc: true });
  });

  it('serves several queries on one TCP connection, in pieces of any size', async () => {
    const socket = connect(server.port, '127.0.0.1');
    const framed = Buffer.concat([streamEncode(txtQuery), streamEncode({ ...txtQuery, id: 8 })]);
    socket.write(framed.subarray(0, 1));
    socket.write(framed.subarray(1, 20));
    socket.write(framed.subarray(20));
    let received = Buffer.alloc(0);
    const ids: (number | undefined)[] = [];
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
        const end = 2 + received.readUInt16BE(0);
        ids.push(decode(received.subarray(2, end)).id);
        received = received.subarray(end);
      }
      if (ids.length === 2) break;
    }
    expect(ids).toEqual([7, 8]);
    expect(queries.map((query) => query.transport)).toEqual(['tcp', 'tcp']);
  });
});

describe('faults and noise', () => {
  it('fails a name as told, until it is healed', async () => {
    server.set('example.com', 'TXT', ['here']);
    server.fault('example.com', 'servfail');
    await expect(resolver.resolveTxt('example.com')).rejects.toMatchObject({ code: 'ESERVFAIL' });
    server.fault('example.com', 'refused');
    await expect(resolver.resolveTxt('example.com')).rejects.toMatchObject({ code: 'EREFUSED' });
    server.fault('example.com', 'silent');
    const patient = new Resolver({ timeout: 100, tries: 1 });
    patient.setServers([server.address]);
    await expect(patient.resolveTxt('example.com')).rejects.toMatchObject({ code: 'ETIMEOUT' });
    server.fault('example.com', null);
    expect(await resolver.resolveTxt('example.com')).toEqual([['here']]);
    expect(queries.at(-1)).toEqual({ name: 'example.com', type: 'TXT', transport: 'udp' });
  });

  it('answers what it does not do with the right code, and answers no answers', async () => {
    const update = encode(txtQuery);
    update.writeUInt16BE(5 << 11, 2);
    expect(await askUdp(update)).toMatchObject({ rcode: 'NOTIMP', id: 7 });
    expect(await askUdp({ id: 9, questions: [] })).toMatchObject({ rcode: 'FORMERR', id: 9 });
    expect(await askUdp({ questions: [{ type: 'TXT', name: 'a.example', class: 'CH' }] })).toMatchObject({
      rcode: 'REFUSED',
    });
  });

  it('survives any bytes', async () => {
    server.set('example.com', 'A', ['192.0.2.1']);
    const socket = createSocket('udp4');
    const header = fc.constantFrom(encode(txtQuery), Buffer.alloc(0));
    fc.assert(
      fc.property(header, fc.uint8Array({ maxLength: 64 }), fc.nat(40), (start, noise, at) => {
        const message = Buffer.concat([start.subarray(0, at), noise]);
        socket.send(message, server.port, '127.0.0.1');
      }),
    );
    expect(await resolver.resolve4('example.com')).toEqual(['192.0.2.1']);
    socket.close();
  });
});
