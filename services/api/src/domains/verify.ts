import { ProblemError } from '@millrace/contract';
import { readRecord } from '@millrace/domain';
import {
  type DomainRow,
  findDomain,
  noteDomainCheck,
  recordDomainCheck,
  verificationRecord,
} from '@millrace/store';
import { type FeatureDeps } from '../deps.ts';

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
  const check = {
    domainId: domain.id,
    ...readRecord(await txt.look(name), value),
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
