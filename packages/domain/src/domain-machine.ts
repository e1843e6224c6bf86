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
