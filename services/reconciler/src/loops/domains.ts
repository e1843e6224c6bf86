import { readRecord } from '@millrace/domain';
import { type Clock, type Logger, type TxtAnswer, type TxtLookup } from '@millrace/platform';
import {
  type Database,
  type DomainRow,
  domainsToCheck,
  recordDomainCheck,
  verificationRecord,
} from '@millrace/store';
import { reconcileAll, type ReconcileLoop, type Reconciler } from './loop.ts';

interface Deps {
  store: Database;
  txt: TxtLookup;
  clock: Clock;
  logger: Logger;
}

interface Seen {
  domain: DomainRow;
  /** The value that the record should have. */
  value: string;
  answer: TxtAnswer;
}
type RecordLook = ReturnType<typeof readRecord>;

const perRun = 200;
/** Look-ups at once: a slow zone holds up few others. */
const atOnce = 8;

/** Looks every verified domain's record up once a day; one that is gone for 7 days lapses (contract DOM-102). */
export function checkDomainsLoop({ store, txt, clock, logger }: Deps): ReconcileLoop {
  const domains: Reconciler<DomainRow, Seen, RecordLook> = {
    name: 'check-domains',
    list: () => domainsToCheck(store, clock.now(), perRun),
    nameOf: ({ id }) => id,
    observe: async (domain) => {
      const { name, value } = verificationRecord(domain);
      return { domain, answer: await txt.look(name), value };
    },
    // What was found is recorded in any case: when it was looked up says when it is due again.
    decide: ({ answer, value }) => readRecord(answer, value),
    act: async (look, { domain: { id: domainId, accountId, hostname } }) => {
      const after = await store.transaction((tx) =>
        recordDomainCheck(tx, { ...look, domainId, accountId, by: 'daily', at: clock.now() }),
      );
      if (after.status === 'lapsed') logger.warn({ domainId, hostname, accountId }, 'domain lapsed');
      return false;
    },
  };
  return reconcileAll(domains, { everyMs: 60_000, atOnce, clock, logger });
}
