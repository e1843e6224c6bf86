import { fieldProblem, ProblemError } from '@millrace/contract';
import { type Clock } from '@millrace/platform';
import {
  claimIdempotencyKey,
  type Database,
  type IdempotencyClaim,
  type IdempotencyScope,
  keepIdempotentResult,
  releaseIdempotencyKey,
  type Transaction,
} from '@millrace/store';
import { createHash } from 'node:crypto';
import { type IncomingHttpHeaders } from 'node:http';

/** How long a twin waits for the one that runs (contract IDK-006). */
const twinWaitMs = 30_000;
const pollMs = 100;

/** What is needed of a call. */
export interface IdempotentCall {
  headers: IncomingHttpHeaders;
  method: string;
  path: string;
  json: unknown;
  signal: AbortSignal;
  setHeader(name: string, value: string): void;
}

export interface IdempotentWork<Kept, Answer> {
  /** Does the work; calls `keep` in the transaction that makes it final, with what a replay needs. */
  run(keep: (tx: Transaction, kept: Kept) => Promise<void>): Promise<Answer>;
  /** The first answer again, from what was kept. */
  replay(kept: Kept): Promise<Answer>;
}

/**
 * Runs a create at most once per `Idempotency-Key`: a twin with the same body waits and gets the same answer,
 * with another body `422`. Only successes are kept, 24 hours. Without the header the work simply runs.
 *
 * @param status of the success answer, kept beside it
 * @throws ProblemError `invalid_request` (400 for the key itself, 422 for another body), `service_unavailable`
 *   when the twin takes too long
 */
export async function idempotently<Kept, Answer>(
  deps: { store: Database; clock: Clock },
  input: { accountId: string; call: IdempotentCall; status: number },
  work: IdempotentWork<Kept, Answer>,
): Promise<Answer> {
  const { accountId, call, status } = input;
  const key = idempotencyKeyOf(call.headers);
  if (key === null) return work.run(() => Promise.resolve());
  const scope: IdempotencyScope = { accountId, method: call.method, path: call.path, key };
  const claim = await claimOrWait(deps, scope, call);
  if (claim.kind === 'done') {
    call.setHeader('Idempotency-Replayed', 'true');
    return work.replay(claim.kept as Kept);
  }
  const { claimedAt } = claim;
  const result = { kept: false };
  try {
    const answer = await work.run(async (tx, kept) => {
      await keepIdempotentResult(tx, scope, { claimedAt, status, kept });
      result.kept = true;
    });
    if (!result.kept) throw new Error('work under an Idempotency-Key ended without keeping its result');
    return answer;
  } catch (error) {
    // A release that fails is caught up by the claim's own age.
    await releaseIdempotencyKey(deps.store, scope, claimedAt).catch(() => undefined);
    throw error;
  }
}

/** The key, or null without one. @throws ProblemError `invalid_request` for an empty, long or unprintable one */
export function idempotencyKeyOf(headers: IncomingHttpHeaders): string | null {
  const key = headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key === 'string' && /^[\x20-\x7e]{1,255}$/.test(key)) return key;
  throw fieldProblem('invalid_request', 'Idempotency-Key', 'must have 1 to 255 printable ASCII characters');
}

async function claimOrWait(
  { store, clock }: { store: Database; clock: Clock },
  scope: IdempotencyScope,
  call: IdempotentCall,
): Promise<Extract<IdempotencyClaim, { kind: 'claimed' | 'done' }>> {
  const bodyHash = hashOfJson(call.json);
  const until = clock.now().getTime() + twinWaitMs;
  for (;;) {
    const now = clock.now();
    const claim = await claimIdempotencyKey(store, scope, { bodyHash, now });
    if (claim.kind === 'mismatch') {
      throw new ProblemError('invalid_request', {
        status: 422,
        detail: 'This Idempotency-Key was used with another body.',
      });
    }
    if (claim.kind !== 'running') return claim;
    if (now.getTime() >= until) {
      throw new ProblemError('service_unavailable', {
        retryAfter: 1,
        detail: 'The first request with this Idempotency-Key is still running.',
      });
    }
    await clock.sleep(pollMs, call.signal);
  }
}

/** Bodies are compared as parsed JSON: order of fields and white space do not count. */
export const hashOfJson = (json: unknown): Buffer => createHash('sha256').update(canonical(json)).digest();

function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, item]) => `${JSON.stringify(name)}:${canonical(item)}`).join(',')}}`;
}
