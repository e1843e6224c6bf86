import { writeAudit } from './audit.ts';
import { type Queryable, type Transaction } from './db.ts';

/** Whether the verified number of an account `a` is banned, as a column. */
export const phoneBannedColumn = `exists (
  select from phone_bans pb where pb.phone_hash = a.phone_hash) as "phoneBanned"`;

/**
 * Bans a phone number: it proves nothing any more, and accounts that have proved it are refused.
 * @param phoneHashes of the one number, under every key of the set
 */
export async function banPhone(
  tx: Transaction,
  {
    phoneHashes,
    reason = null,
    actor,
  }: { phoneHashes: readonly Buffer[]; reason?: string | null; actor: string },
): Promise<void> {
  await tx.query(
    `insert into phone_bans (phone_hash, reason) select h, $2 from unnest($1::bytea[]) h
     on conflict (phone_hash) do update set reason = excluded.reason`,
    [phoneHashes, reason],
  );
  await writeAudit(tx, {
    actor,
    action: 'phone.ban',
    subject: phoneSubject(phoneHashes),
    details: { reason },
  });
}

/** Lifts the ban of a phone number; none is no error. */
export async function unbanPhone(
  tx: Transaction,
  { phoneHashes, actor }: { phoneHashes: readonly Buffer[]; actor: string },
): Promise<void> {
  await tx.query('delete from phone_bans where phone_hash = any($1::bytea[])', [phoneHashes]);
  await writeAudit(tx, { actor, action: 'phone.unban', subject: phoneSubject(phoneHashes) });
}

/** Bans a device, by the id in its signed cookie. */
export async function banDevice(
  tx: Transaction,
  { deviceId, reason = null, actor }: { deviceId: string; reason?: string | null; actor: string },
): Promise<void> {
  await tx.query(
    `insert into device_bans (device_id, reason) values ($1, $2)
     on conflict (device_id) do update set reason = excluded.reason`,
    [deviceId, reason],
  );
  await writeAudit(tx, { actor, action: 'device.ban', subject: deviceId, details: { reason } });
}

/** Lifts the ban of a device; none is no error. */
export async function unbanDevice(
  tx: Transaction,
  { deviceId, actor }: { deviceId: string; actor: string },
): Promise<void> {
  await tx.query('delete from device_bans where device_id = $1', [deviceId]);
  await writeAudit(tx, { actor, action: 'device.unban', subject: deviceId });
}

export async function isDeviceBanned(db: Queryable, deviceId: string): Promise<boolean> {
  const { rowCount } = await db.query(
    'select from device_bans where device_id = $1',
    [deviceId],
    'device-banned',
  );
  return rowCount > 0;
}

export async function isPhoneBanned(db: Queryable, phoneHashes: readonly Buffer[]): Promise<boolean> {
  const { rowCount } = await db.query('select from phone_bans where phone_hash = any($1::bytea[])', [
    phoneHashes,
  ]);
  return rowCount > 0;
}

/** Enough of the hash to tell numbers apart in the log. */
const phoneSubject = (phoneHashes: readonly Buffer[]): string =>
  `phone:${phoneHashes[0]?.toString('hex').slice(0, 16) ?? ''}`;
