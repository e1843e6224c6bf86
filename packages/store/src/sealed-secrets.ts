import { type Queryable } from './db.ts';

export interface SealedSecret {
  endpointId: string;
  sealed: string;
}

/** Endpoints whose secret is sealed with another key than this, oldest first, after an id. */
export async function secretsOfOtherKeys(
  db: Queryable,
  { kid, after, limit }: { kid: string; after: string; limit: number },
): Promise<SealedSecret[]> {
  const { rows } = await db.query<SealedSecret>(
    `select id as "endpointId", secret as sealed from webhook_endpoints
     where deleted_at is null and id > $2 and split_part(secret, '.', 1) <> $1 order by id limit $3`,
    [kid, after, limit],
  );
  return rows;
}

/** Puts another sealing of the same secret in its place, unless it was replaced meanwhile. Returns whether it did. */
export async function resealSecret(
  db: Queryable,
  { endpointId, sealed }: SealedSecret,
  resealed: string,
): Promise<boolean> {
  const { rowCount } = await db.query(
    'update webhook_endpoints set secret = $3 where id = $1 and secret = $2 and deleted_at is null',
    [endpointId, sealed, resealed],
  );
  return rowCount === 1;
}
