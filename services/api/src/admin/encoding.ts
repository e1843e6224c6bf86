import { fieldProblem } from '@millrace/contract';
import {
  type Database,
  type EncodePauseScope,
  listEncodePauses,
  pauseEncoding,
  resumeEncoding,
} from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';

export type EncodingHandlers = Pick<ApiHandlers, 'getEncodePauses' | 'pauseEncoding' | 'resumeEncoding'>;
export type EncodePauses = Awaited<ReturnType<EncodingHandlers['getEncodePauses']>>;

/** An account or a class of workers; neither is everything. */
interface Paused {
  accountId?: string | undefined;
  class?: 'standard' | 'large' | undefined;
}

/** What the team holds back from being encoded. */
export const encodingHandlers = ({ store }: FeatureDeps): EncodingHandlers => ({
  getEncodePauses: () => encodePauses(store),
  pauseEncoding: ({ caller: { actor }, body: { reason = null, ...what } }) =>
    pauseEncodes(store, { what, reason, actor }),
  resumeEncoding: ({ caller: { actor }, query: what }) => resumeEncodes(store, { what, actor }),
});

/** Every pause. */
export const encodePauses = async (store: Database): Promise<EncodePauses> => ({
  data: (await listEncodePauses(store)).map((row) => ({ ...row, pausedAt: row.pausedAt.toISOString() })),
});

/**
 * Takes no new encodes of what is named, from the next claim on.
 * @throws ProblemError `invalid_request` when account and class are both named; `not_found`
 */
export async function pauseEncodes(
  store: Database,
  { what, reason, actor }: { what: Paused; reason: string | null; actor: string },
): Promise<EncodePauses> {
  const pause = scopeOf(what);
  await store.transaction((tx) => pauseEncoding(tx, { pause, reason, actor }));
  return encodePauses(store);
}

/** Lifts a pause, named as it was made. @throws ProblemError `invalid_request` when account and class are both named */
export async function resumeEncodes(
  store: Database,
  { what, actor }: { what: Paused; actor: string },
): Promise<EncodePauses> {
  const pause = scopeOf(what);
  await store.transaction((tx) => resumeEncoding(tx, { pause, actor }));
  return encodePauses(store);
}

function scopeOf({ accountId, class: taskClass }: Paused): EncodePauseScope {
  if (accountId !== undefined && taskClass !== undefined) {
    throw fieldProblem('invalid_request', 'accountId', 'cannot be named together with class');
  }
  if (accountId !== undefined) return { scope: 'account', accountId };
  return taskClass === undefined ? { scope: 'all' } : { scope: 'class', class: taskClass };
}
