import { type TaskClass } from '@millrace/domain';
import { writeAudit } from './audit.ts';
import { type Queryable, type Transaction } from './db.ts';

/** What is paused: everything, a class of workers, or an account. */
export type EncodePauseScope =
  { scope: 'all' } | { scope: 'class'; class: TaskClass } | { scope: 'account'; accountId: string };

export interface EncodePause {
  scope: 'all' | 'class' | 'account';
  /** The class or the account; null for everything. */
  subject: string | null;
  reason: string | null;
  pausedAt: Date;
}

const subjectOf = (pause: EncodePauseScope): string =>
  pause.scope === 'class' ? pause.class : pause.scope === 'account' ? pause.accountId : '';

export async function listEncodePauses(db: Queryable): Promise<EncodePause[]> {
  const { rows } = await db.query<EncodePause>(
    `select scope, nullif(subject, '') as subject, reason, paused_at as "pausedAt"
     from encode_pauses order by paused_at, scope, subject`,
    [],
  );
  return rows;
}

/** Holds queued tasks back from the next claim on; what runs goes on. A second pause takes the new reason. */
export async function pauseEncoding(
  tx: Transaction,
  { pause, reason, actor }: { pause: EncodePauseScope; reason: string | null; actor: string },
): Promise<void> {
  const subject = subjectOf(pause);
  await tx.query(
    `insert into encode_pauses (scope, subject, reason, paused_at)
     values ($1, $2, $3, date_trunc('milliseconds', clock_timestamp()))
     on conflict (scope, subject) do update set reason = excluded.reason`,
    [pause.scope, subject, reason],
  );
  const details = { scope: pause.scope, reason };
  await writeAudit(tx, { actor, action: 'encoding.pause', subject: subject || 'all', details });
}

/** Lifts a pause; nothing happens when there is none. Idle workers look once a second. */
export async function resumeEncoding(
  tx: Transaction,
  { pause, actor }: { pause: EncodePauseScope; actor: string },
): Promise<void> {
  const subject = subjectOf(pause);
  await tx.query('delete from encode_pauses where scope = $1 and subject = $2', [pause.scope, subject]);
  const details = { scope: pause.scope };
  await writeAudit(tx, { actor, action: 'encoding.resume', subject: subject || 'all', details });
}
