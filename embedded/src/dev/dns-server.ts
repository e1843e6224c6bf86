import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  decode,
  type DecodedPacket,
  encode,
  type OptAnswer,
  type Packet,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import { type DnsFault, DnsZone, type Lookup, type RecordKind, type RecordValue } from './dns-zone.ts';

export { type DnsFault } from './dns-zone.ts';

export interface DnsQuery {
  /** As asked, without case. */
  name: string;
  type: string;
  transport: 'udp' | 'tcp';
}

/** A DNS server on one UDP and TCP port, authoritative for all names. */
export interface DnsServer {
  /** `host:port`, as `DNS_SERVERS` takes it. */
  readonly address: string;
  readonly port: number;
  /** Replaces the records of a name and type, effective at once; no values remove them. `ttlSeconds` is 1 unless told. */
  set(name: string, type: RecordKind, values: readonly RecordValue[], ttlSeconds?: number): void;
  /** Makes every query of a name, or those of one type, fail in this way; null heals it. */
  fault(name: string, fault: DnsFault | null, type?: RecordKind): void;
  close(): Promise<void>;
}

export interface DnsServerOptions {
  /** Loopback unless told. */
  host?: string;
  /** A free one unless told. */
  port?: number;
  /** Called for each well-formed query, before it is answered. */
  onQuery?: (query: DnsQuery) => void;
}

// RFC 1035 §4.1.1
const rcodes = { noError: 0, formatError: 1, serverFailure: 2, noName: 3, notImplemented: 4, refused: 5 };
const opcodeMask = 0x7800;
/** What a UDP answer may be without EDNS (RFC 1035 §4.2.1), and at most with it (DNS flag day 2020). */
const plainUdpBytes = 512;
const ednsUdpBytes = 1232;
const tcpIdleMs = 10_000;

/** Starts listening; rejects when the host or port cannot be had. */
export async function createDnsServer(options: DnsServerOptions = {}): Promise<DnsServer> {
  const host = options.host ?? '127.0.0.1';
  const zone = new DnsZone();
  const answer = (message: Buffer, transport: DnsQuery['transport']): Buffer | null =>
    answerTo(message, transport, zone, options.onQuery);
  const { tcp, udp, port } = await listenOnBoth(host, options.port ?? 0);
  const connections = new Set<Socket>();
  udp.on('message', (message, from) => {
    const reply = answer(message, 'udp');
    if (reply) udp.send(reply, from.port, from.address);
  });
  tcp.on('connection', (socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    serveTcp(socket, (message) => answer(message, 'tcp'));
  });
  return {
    address: `${host}:${port}`,
    port,
    set: (name, type, values, ttlSeconds = 1) => zone.set(name, type, values, ttlSeconds),
    fault: (name, fault, type) => zone.setFault(name, fault, type),
    close: async () => {
      for (const socket of connections) socket.destroy();
      await Promise.all([closed(tcp), closed(udp)]);
    },
  };
}

/** The same port for both transports; when a free TCP port is taken for UDP, another one is tried. */
async function listenOnBoth(
  host: string,
  wanted: number,
): Promise<{ tcp: Server; udp: UdpSocket; port: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const tcp = createServer();
    tcp.listen(wanted, host);
    await once(tcp, 'listening');
    const { port } = tcp.address() as { port: number };
    const udp = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    try {
      udp.bind(port, host);
      await once(udp, 'listening');
      return { tcp, udp, port };
    } catch (error) {
      await Promise.all([closed(tcp), closed(udp)]);
      if (wanted !== 0 || attempt === 10) throw error;
    }
  }
}

function closed(server: Server | UdpSocket): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

/** Messages framed by two bytes of length (RFC 1035 §4.2.2), any number on one connection. */
function serveTcp(socket: Socket, answer: (message: Buffer) => Buffer | null): void {
  let pending = Buffer.alloc(0);
  socket.setTimeout(tcpIdleMs, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 2) {
      const end = 2 + pending.readUInt16BE(0);
      if (pending.length < end) break;
      const reply = answer(pending.subarray(2, end));
      pending = pending.subarray(end);
      if (!reply) continue;
      const length = Buffer.alloc(2);
      length.writeUInt16BE(reply.length);
      socket.write(Buffer.concat([length, reply]));
    }
  });
}

/** Null when nothing is to be said: noise, an answer sent to us, or a name that is to stay silent. */
function answerTo(
  message: Buffer,
  transport: DnsQuery['transport'],
  zone: DnsZone,
  onQuery?: (query: DnsQuery) => void,
): Buffer | null {
  let query: DecodedPacket;
  try {
    query = decode(message);
  } catch {
    return message.length >= 12 ? emptyAnswer(message, rcodes.formatError) : null;
  }
  if (query.flag_qr) return null;
  if (((query.flags ?? 0) & opcodeMask) !== 0) return emptyAnswer(message, rcodes.notImplemented);
  const question = query.questions?.[0];
  if (question === undefined || query.questions?.length !== 1) {
    return emptyAnswer(message, rcodes.formatError);
  }
  onQuery?.({ name: question.name.toLowerCase(), type: question.type, transport });
  const fault = zone.fault(question.name, question.type);
  if (fault === 'silent') return null;
  if (fault !== undefined || (question.class ?? 'IN') !== 'IN') {
    const rcode = fault === 'servfail' ? rcodes.serverFailure : rcodes.refused;
    return encode({ type: 'response', id: query.id, flags: rcode, questions: query.questions });
  }
  return fit(reply(query, zone.look(question.name, question.type)), query, transport);
}

function reply(query: DecodedPacket, { found, answers, authority }: Lookup): Packet {
  const opt = optOf(query);
  const echo: Answer[] = opt
    ? [
        {
          type: 'OPT',
          name: '.',
          udpPayloadSize: ednsUdpBytes,
          extendedRcode: 0,
          ednsVersion: 0,
          flags: 0,
          flag_do: false,
          options: [],
        },
      ]
    : [];
  return {
    type: 'response',
    id: query.id,
    flags:
      AUTHORITATIVE_ANSWER |
      ((query.flags ?? 0) & RECURSION_DESIRED) |
      (found === 'no_name' ? rcodes.noName : rcodes.noError),
    questions: query.questions,
    answers,
    authorities: authority,
    additionals: echo,
  };
}

/** Too long for this client's UDP: an empty answer that says so, and the client comes back over TCP. */
function fit(packet: Packet, query: DecodedPacket, transport: DnsQuery['transport']): Buffer {
  const bytes = encode(packet);
  if (transport === 'tcp') return bytes;
  const limit = Math.min(Math.max(optOf(query)?.udpPayloadSize ?? 0, plainUdpBytes), ednsUdpBytes);
  if (bytes.length <= limit) return bytes;
  return encode({ ...packet, flags: (packet.flags ?? 0) | TRUNCATED_RESPONSE, answers: [], authorities: [] });
}

function optOf(query: DecodedPacket): OptAnswer | undefined {
  return query.additionals?.find((record) => record.type === 'OPT');
}

/** An answer of a header only, made by hand since the query may not be one that can be written again. */
function emptyAnswer(message: Buffer, rcode: number): Buffer {
  const header = Buffer.alloc(12);
  message.copy(header, 0, 0, 4);
  header.writeUInt16BE((header.readUInt16BE(2) & (opcodeMask | RECURSION_DESIRED)) | 0x8000 | rcode, 2);
  return header;
}
