import { type DomainStatus } from '@millrace/contract';

/** What a look-up of the verification record said. `unknown`: nobody could be asked, which proves nothing. */
export type RecordSeen = 'present' | 'absent' | 'unknown';

export interface DomainState {
  status: DomainStatus;
  /** Since when the daily check has not found the record; null while it does. */
  missingSince: Date | null;
}

const lapseMs = 7 * 86_400_000;

/**
 * How a domain moves by one look-up (contract DOM-101 to DOM-104): the record verifies it, whoever asked. Without the
 * record a customer's own look-up changes nothing; the daily check counts from its first miss and after 7 days
 * lets a verified domain lapse.
 */
export function decideDomain(
  state: DomainState,
  look: { by: 'customer' | 'daily'; seen: RecordSeen; at: Date },
): DomainState {
  if (look.seen === 'present') return { status: 'verified', missingSince: null };
  if (look.seen === 'unknown' || look.by === 'customer' || state.status !== 'verified') return state;
  const missingSince = state.missingSince ?? look.at;
  const lapsed = look.at.getTime() - missingSince.getTime() >= lapseMs;
  return { status: lapsed ? 'lapsed' : 'verified', missingSince };
}

/** What the DNS said of a name's TXT records, or that nobody who should know could be asked. */
export type RecordAnswer = { kind: 'answered'; values: readonly string[] } | { kind: 'unavailable' };

/** What is kept of a look-up, so that its reader sees what to mend: other people's records may stand there too. */
const maximumFound = 20;
const maximumFoundLength = 255;

/**
 * What a look-up means for a domain whose record must say `value`, and what is to be kept of it: anybody may write
 * into a zone of theirs what no record or terminal should hold.
 */
export function readRecord(answer: RecordAnswer, value: string): { seen: RecordSeen; found: string[] } {
  if (answer.kind === 'unavailable') return { seen: 'unknown', found: [] };
  const found = answer.values
    .slice(0, maximumFound)
    .map((text) => text.replace(/[^\x20-\x7e]/g, '\ufffd').slice(0, maximumFoundLength));
  return { seen: answer.values.includes(value) ? 'present' : 'absent', found };
}
