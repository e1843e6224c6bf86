import { readRecord } from '@millrace/domain';
import { type Clock, type Logger, type TxtLookup } from '@millrace/platform';
import {
  type Database,
  type DomainRow,
  domainsToCheck,
  recordDomainCheck,
  verificationRecord,
} from '@millrace/store';
import { type ReconcileLoop } from './loop.ts';

interface Deps {
  store: Database;
  txt: TxtLookup;
  clock: Clock;
  logger: Logger;
}

const perRun = 200;
/** Look-ups at once: a slow zone holds up few others. */
const concurrency = 8;

/** Looks every verified domain's record up once a day; one that is gone for 7 days lapses (contract DOM-102). */
export function checkDomainsLoop(deps: Deps): ReconcileLoop {
  return {
    name: 'check-domains',
    everyMs: 60_000,
    run: async (signal) => {
      const waiting = await domainsToCheck(deps.store, deps.clock.now(), perRun);
      const due = [...waiting];
      const work = async (): Promise<void> => {
        for (let domain = due.shift(); domain !== undefined && !signal.aborted; domain = due.shift()) {
          await checkDomain(deps, domain);
        }
      };
      await Promise.all(Array.from({ length: concurrency }, work));
      return waiting.length;
    },
  };
}

/** One that cannot be checked must not keep the others waiting: it is tried again with the next run. */
async function checkDomain({ store, txt, clock, logger }: Deps, domain: DomainRow): Promise<void> {
  const { id: domainId, accountId, hostname } = domain;
  const { name, value } = verificationRecord(domain);
  try {
    const look = readRecord(await txt.look(name), value);
    const after = await store.transaction((tx) =>
      recordDomainCheck(tx, { ...look, domainId, accountId, by: 'daily', at: clock.now() }),
    );
    if (after.status === 'lapsed') logger.warn({ domainId, hostname, accountId }, 'domain lapsed');
  } catch (error) {
    logger.error({ err: error, domainId }, 'domain not checked');
  }
}
