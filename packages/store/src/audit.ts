import { newId } from '@millrace/domain';
import { type Transaction } from './db.ts';

export interface AuditEntry {
  /** `operator`, `admin`, an access-gateway subject, `kubernetes:<namespace>/<name>`. */
  actor: string;
  /** A dotted verb: `account.ban`. */
  action: string;
  /** Id of what was acted on. */
  subject: string;
  /** What changed; never a secret. */
  details?: object;
}

/** Records an act of the team, in the transaction of the act itself. Rows are never changed or deleted. */
export async function writeAudit(tx: Transaction, entry: AuditEntry): Promise<void> {
  await tx.query(
    `insert into audit (id, at, actor, action, subject, details) values ($1, clock_timestamp(), $2, $3, $4, $5)`,
    [newId('aud'), entry.actor, entry.action, entry.subject, JSON.stringify(entry.details ?? {})],
    'audit-write',
  );
}
