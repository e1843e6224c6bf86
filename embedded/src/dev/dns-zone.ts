import { type Answer, type RecordType, type StringAnswer } from 'dns-packet';

/** What a name answers with, beside well-formed records. `silent` never answers. */
export type DnsFault = 'servfail' | 'refused' | 'silent';

export type RecordKind = 'A' | 'AAAA' | 'NS' | 'CNAME' | 'TXT';
/** A record's text; for TXT also the strings that it is cut into. */
export type RecordValue = string | readonly string[];

export interface Lookup {
  found: 'answer' | 'no_data' | 'no_name';
  answers: Answer[];
  /** The start-of-authority record that goes with a negative answer (RFC 2308 §3). */
  authority: Answer[];
}

/** How long a negative answer may be kept, in seconds. */
const negativeTtlSeconds = 1;
const maxAliases = 8;

/** Records by name, changed while the server runs. Names are compared without case and without a final dot. */
export class DnsZone {
  readonly #sets = new Map<string, Map<RecordKind, Answer[]>>();
  readonly #faults = new Map<string, DnsFault>();

  /** Replaces the record set of a name and type; an empty list removes it. */
  set(name: string, type: RecordKind, values: readonly RecordValue[], ttlSeconds: number): void {
    const key = canonicalName(name);
    const types = this.#sets.get(key) ?? new Map<RecordKind, Answer[]>();
    if (values.length === 0) types.delete(type);
    else
      types.set(
        type,
        values.map((value) => toAnswer(key, type, value, ttlSeconds)),
      );
    if (types.size === 0) this.#sets.delete(key);
    else this.#sets.set(key, types);
  }

  /** Of every type, unless one is told. */
  setFault(name: string, fault: DnsFault | null, type?: RecordKind): void {
    const key = faultKey(name, type);
    if (fault === null) this.#faults.delete(key);
    else this.#faults.set(key, fault);
  }

  fault(name: string, type: string): DnsFault | undefined {
    return this.#faults.get(faultKey(name)) ?? this.#faults.get(faultKey(name, type));
  }

  /** The answer by RFC 1034 §4.3.2: records, an alias followed as far as it is known here, or a negative answer. */
  look(name: string, type: RecordType | 'ANY'): Lookup {
    const answers: Answer[] = [];
    let key = canonicalName(name);
    for (let aliases = 0; aliases <= maxAliases; aliases += 1) {
      const types = this.#sets.get(key);
      const hits = type === 'ANY' ? [...(types?.values() ?? [])].flat() : types?.get(type as RecordKind);
      if (hits !== undefined && hits.length > 0) {
        return { found: 'answer', answers: [...answers, ...hits], authority: [] };
      }
      const alias = types?.get('CNAME')?.[0] as StringAnswer | undefined;
      if (alias === undefined) break;
      answers.push(alias);
      key = canonicalName(alias.data);
    }
    const found = this.#exists(key) ? 'no_data' : 'no_name';
    return { found, answers, authority: [this.#startOfAuthority(key)] };
  }

  /** A name exists when it has records or a name below it has (an empty non-terminal, RFC 8020). */
  #exists(key: string): boolean {
    if (this.#sets.has(key)) return true;
    for (const name of this.#sets.keys()) if (name.endsWith(`.${key}`)) return true;
    return false;
  }

  /** The zone of a name begins at the nearest name above it with NS records, else at the root. */
  #startOfAuthority(key: string): Answer {
    let apex = key;
    while (apex !== '' && this.#sets.get(apex)?.has('NS') !== true) {
      const dot = apex.indexOf('.');
      apex = dot < 0 ? '' : apex.slice(dot + 1);
    }
    return {
      type: 'SOA',
      class: 'IN',
      name: apex === '' ? '.' : apex,
      ttl: negativeTtlSeconds,
      data: {
        mname: 'ns.invalid',
        rname: 'hostmaster.invalid',
        serial: 1,
        refresh: 60,
        retry: 60,
        expire: 60,
        minimum: negativeTtlSeconds,
      },
    };
  }
}

const faultKey = (name: string, type = '*'): string => `${canonicalName(name)} ${type}`;

function canonicalName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}

function toAnswer(name: string, type: RecordKind, value: RecordValue, ttl: number): Answer {
  if (type === 'TXT') return { type, class: 'IN', name, ttl, data: [value].flat().flatMap(characterStrings) };
  if (typeof value !== 'string') throw new TypeError(`a ${type} record has one value`);
  return { type, class: 'IN', name, ttl, data: value };
}

/** A text in the pieces of at most 255 bytes that a TXT record is made of (RFC 1035 §3.3). */
function characterStrings(text: string): Buffer[] {
  const bytes = Buffer.from(text, 'utf8');
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 255) pieces.push(bytes.subarray(at, at + 255));
  return pieces.length === 0 ? [Buffer.alloc(0)] : pieces;
}
