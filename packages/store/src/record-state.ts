import { writeAudit } from './audit.ts';
import { type Database, type Queryable } from './db.ts';

export interface RecordState {
  restoredAt: Date | null;
  sweepsOff: boolean;
  /** Copies of holds are still to be placed again. */
  holdsWanted: boolean;
  mark: number;
}

const columns = `restored_at as "restoredAt", sweeps_off as "sweepsOff", holds_wanted as "holdsWanted", mark`;
const atOnce = 5_000;

export async function recordState(db: Queryable): Promise<RecordState> {
  const { rows } = await db.query<RecordState>(`select ${columns} from record_state`);
  const [state] = rows;
  if (state === undefined) throw new Error('the record says nothing of itself');
  return state;
}

/** Raises the record's mark and returns it. */
export async function raiseMark(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ mark: number }>('update record_state set mark = mark + 1 returning mark');
  return rows[0]?.mark ?? 0;
}

/**
 * Makes a record that came back from a backup safe to run: nothing deletes objects until `allowSweeps`, copies of holds
 * are placed again, and each version is above all that anybody can have seen (the time in milliseconds; nothing changes
 * a thousand times a second), so that versions never go backwards. Tasks cannot be ended by workers of the life before.
 * Safe to repeat. The record counts as whole by its last statement: what broke off before is done again by whoever
 * compares marks next, and no hold is placed again below a version of the life before.
 *
 * @param mark the last of the life before, where it is known
 */
export async function declareRestored(
  db: Database,
  { actor, mark = 0 }: { actor: string; mark?: number },
): Promise<RecordState> {
  const { rows } = await db.query<{ epoch: number }>(
    `update record_state set restored_at = clock_timestamp(), sweeps_off = true,
       epoch = greatest(epoch + 1, floor(extract(epoch from clock_timestamp()) * 1000))
     returning epoch`,
  );
  const epoch = rows[0]?.epoch ?? 0;
  for (const [table, column] of [
    ['videos', 'version'],
    ['accounts', 'version'],
    ['projects', 'version'],
    ['encode_tasks', 'fence'],
  ] as const) {
    await raise(db, { table, column, epoch });
  }
  return db.transaction(async (tx) => {
    await tx.query(
      'update video_holds set copied_at = null where lifted_at is null and copied_at is not null',
    );
    // A completed upload that the backup has as open is found by its owner's next call, and not expired before.
    await tx.query(
      `update uploads set expires_at = greatest(expires_at, clock_timestamp() + interval '7 days') where state = 'open'`,
    );
    await writeAudit(tx, { actor, action: 'record.restored', subject: 'record', details: { mark } });
    await tx.query('update record_state set holds_wanted = true, mark = greatest(mark, $1)', [mark]);
    return recordState(tx);
  });
}

/** Page by page: the tables may be large, a statement has its bound, and no page is looked at twice. */
async function raise(
  db: Queryable,
  { table, column, epoch }: { table: string; column: string; epoch: number },
): Promise<void> {
  for (let after: string | null = ''; after !== null;) {
    const { rows }: { rows: { last: string | null }[] } = await db.query(
      `with page as (select id from ${table} where id > $2 order by id limit ${atOnce}),
         raised as (update ${table} t set ${column} = $1 from page where t.id = page.id and t.${column} < $1)
       select max(id) as last from page`,
      [epoch, after],
    );
    after = rows[0]?.last ?? null;
  }
}

/** Lets sweeps delete objects again after a restore. */
export const allowSweeps = (db: Database, { actor }: { actor: string }): Promise<RecordState> =>
  db.transaction(async (tx) => {
    await tx.query('update record_state set sweeps_off = false');
    await writeAudit(tx, { actor, action: 'record.sweep', subject: 'record' });
    return recordState(tx);
  });

export const holdsRestored = async (db: Queryable): Promise<void> => {
  await db.query('update record_state set holds_wanted = false');
};
