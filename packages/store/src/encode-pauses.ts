import { ProblemError } from '@millrace/contract';
import { type TaskClass } from '@millrace/domain';
import { writeAudit } from './audit.ts';
import { type Queryable, type Transaction } from './db.ts';
import { lockClaims, publishQueued } from './encode-permits.ts';

/** What is paused: everything, a class of workers, or an account. */
export type EncodePauseScope =
  { scope: 'all' } | { scope: 'class'; class: TaskClass } | { scope: 'account'; accountId: string };

export interface EncodePause {
  scope: 'all' | 'class' | 'account';
  /** The class or the account; null for everything. */
  subject: string | null;
  reason: string | null;
  pausedAt: Date;
  /** Who made it, or gave its reason last. */
  pausedBy: string | null;
}

const pauseAction = 'encoding.pause';
/** Of the audit log's rows for a pause of everything. */
const everything = 'all';
/** A permit wakes one slot; slots beyond these look by themselves within a second. */
const permitsAtResume = 256;

const subjectOf = (pause: EncodePauseScope): string =>
  pause.scope === 'class' ? pause.class : pause.scope === 'account' ? pause.accountId : '';

export async function listEncodePauses(db: Queryable): Promise<EncodePause[]> {
  const { rows } = await db.query<EncodePause>(
    `select p.scope, nullif(p.subject, '') as subject, p.reason, p.paused_at as "pausedAt",
       (select a.actor from audit a
        where a.subject = coalesce(nullif(p.subject, ''), $1) and a.action = $2
        order by a.at desc, a.id desc limit 1) as "pausedBy"
     from encode_pauses p order by p.paused_at, p.scope, p.subject`,
    [everything, pauseAction],
  );
  return rows;
}

/** How many pauses there are of each scope. */
export async function countEncodePauses(
  db: Queryable,
): Promise<readonly { scope: EncodePause['scope']; count: number }[]> {
  const { rows } = await db.query<{ scope: EncodePause['scope']; count: number }>(
    `select s.scope, count(p.scope)::int as count from unnest(array['all', 'class', 'account']) as s (scope)
     left join encode_pauses p on p.scope = s.scope group by s.scope`,
    [],
    'encode-pause-counts',
  );
  return rows;
}

/**
 * Holds queued tasks back; what runs goes on. When this has committed, no claim is under way that did not see it. A
 * second pause takes the new reason.
 * @throws ProblemError `not_found` for an account that is not there
 */
export async function pauseEncoding(
  tx: Transaction,
  { pause, reason, actor }: { pause: EncodePauseScope; reason: string | null; actor: string },
): Promise<void> {
  const subject = subjectOf(pause);
  if (pause.scope === 'account') {
    const { rowCount } = await tx.query('select from accounts where id = $1', [subject]);
    if (rowCount === 0) throw new ProblemError('not_found');
  }
  await tx.query(
    `insert into encode_pauses (scope, subject, reason, paused_at)
     values ($1, $2, $3, date_trunc('milliseconds', clock_timestamp()))
     on conflict (scope, subject) do update set reason = excluded.reason`,
    [pause.scope, subject, reason],
  );
  const details = { scope: pause.scope, reason };
  await writeAudit(tx, { actor, action: pauseAction, subject: subject || everything, details });
  await tx.query(`select ${lockClaims}`);
}

/** Lifts a pause and wakes encoders for what waits; nothing else happens when there is none. */
export async function resumeEncoding(
  tx: Transaction,
  { pause, actor }: { pause: EncodePauseScope; actor: string },
): Promise<void> {
  const subject = subjectOf(pause);
  const { rowCount } = await tx.query('delete from encode_pauses where scope = $1 and subject = $2', [
    pause.scope,
    subject,
  ]);
  const details = { scope: pause.scope };
  await writeAudit(tx, { actor, action: 'encoding.resume', subject: subject || everything, details });
  if (rowCount > 0) await publishQueued(tx, { ...pause, olderThanMs: 0, limit: permitsAtResume });
}
