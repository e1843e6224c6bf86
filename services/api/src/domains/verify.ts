import { ProblemError } from '@millrace/contract';
import { type RecordSeen } from '@millrace/domain';
import { type TxtAnswer } from '@millrace/platform';
import {
  type DomainRow,
  findDomain,
  noteDomainCheck,
  recordDomainCheck,
  verificationRecord,
} from '@millrace/store';
import { type FeatureDeps } from '../deps.ts';

/** What is kept of a look-up, so that its caller sees what to mend: other people's records may stand there too. */
const maximumFound = 20;
const maximumFoundLength = 255;

/**
 * Looks a domain's record up now and moves the domain by what is found. The look-up is done before any lock is
 * taken: a slow name server holds up nobody else.
 * @throws ProblemError `not_found`, `plan_limit_reached`, `hostname_taken`
 */
export async function verifyDomain(
  deps: Pick<FeatureDeps, 'store' | 'txt' | 'clock'>,
  input: { projectId: string; domainId: string },
): Promise<DomainRow> {
  const { store, txt, clock } = deps;
  const domain = await findDomain(store, input.projectId, input.domainId);
  if (domain === null) throw new ProblemError('not_found');
  const { name, value } = verificationRecord(domain);
  const answer = await txt.look(name);
  const check = {
    domainId: domain.id,
    seen: seenIn(answer, value),
    found: shown(answer),
    at: clock.now(),
  };
  try {
    return await store.transaction((tx) =>
      recordDomainCheck(tx, { ...check, accountId: domain.accountId, by: 'customer' }),
    );
  } catch (error) {
    if (error instanceof ProblemError) await noteDomainCheck(store, check);
    throw error;
  }
}

function seenIn(answer: TxtAnswer, value: string): RecordSeen {
  if (answer.kind === 'unavailable') return 'unknown';
  return answer.values.includes(value) ? 'present' : 'absent';
}

/** Anybody may write into a zone of theirs what no record or terminal should hold. */
const shown = (answer: TxtAnswer): string[] =>
  answer.kind === 'unavailable'
    ? []
    : answer.values
        .slice(0, maximumFound)
        .map((text) => text.replace(/[^\x20-\x7e]/g, '\ufffd').slice(0, maximumFoundLength));
