/**
 * What one would write by hand for this one route: `node:http` and `pg`, and one prepared statement that joins key,
 * project, account, bans and video. It refuses what must be refused and answers the same body; it has no rate limit,
 * no log and no metrics.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { Pool } from 'pg';
import { serveSide } from './api-side.ts';

interface Row {
  secret: Buffer;
  expires_at: Date | null;
  revoked_at: Date | null;
  banned_at: Date | null;
  phone_banned: boolean;
  max_quality: string;
  project_id: string;
  id: string | null;
  title: string;
  status: string;
  duration_ms: string | null;
  qualities: string[];
  size_bytes: string;
  failure_code: string | null;
  failure_message: string | null;
  created_at: Date;
  updated_at: Date;
  ready_at: Date | null;
}

const statement = `select k.secret_hash as secret, k.expires_at, k.revoked_at, a.banned_at,
    exists (select from phone_bans b where b.phone_hash = a.phone_hash) as phone_banned, pl.max_quality,
    p.id as project_id, v.id, v.title, v.status, v.duration_ms, v.qualities, v.size_bytes, v.failure_code,
    v.failure_message, v.created_at, v.updated_at, v.ready_at
  from api_keys k
  join projects p on p.id = k.project_id and p.deleted_at is null
  join accounts a on a.id = p.account_id
  join plans pl on pl.id = case when a.plan_status = 'canceled' then 'free' else a.plan_id end
  left join videos v on v.id = $2 and v.project_id = p.id and v.deleted_at is null
  where k.id = $1`;

const route = /^\/v1\/projects\/(prj_[A-Za-z0-9]+)\/videos\/(vid_[A-Za-z0-9]+)$/;
const bearer = /^Bearer svk_([A-Za-z0-9]+)_([A-Za-z0-9]+)$/;
const order = ['360p', '720p', '1080p', '1440p', '2160p'];

/** Status and body of the answer. */
async function answerTo(pool: Pool, request: IncomingMessage): Promise<[number, object]> {
  const path = route.exec(request.url ?? '');
  if (path === null || request.method !== 'GET') return [404, { code: 'not_found' }];
  const key = bearer.exec(request.headers.authorization ?? '');
  if (key === null) return [401, { code: 'unauthorized' }];
  const { rows } = await pool.query<Row>({
    name: 'get-video',
    text: statement,
    values: [`key_${key[1] ?? ''}`, path[2]],
  });
  const row = rows[0];
  const hash = createHash('sha256')
    .update(key[2] ?? '')
    .digest();
  if (row === undefined || !timingSafeEqual(hash, row.secret) || row.revoked_at !== null) {
    return [401, { code: 'unauthorized' }];
  }
  if (row.expires_at !== null && row.expires_at <= new Date()) return [401, { code: 'unauthorized' }];
  if (row.banned_at !== null) return [403, { code: 'account_banned' }];
  if (row.phone_banned) return [403, { code: 'banned' }];
  if (row.project_id !== path[1] || row.id === null) return [404, { code: 'not_found' }];
  return [200, videoOf(row)];
}

function videoOf(row: Row): object {
  const most = order.indexOf(row.max_quality);
  return {
    id: row.id,
    projectId: row.project_id,
    title: row.title,
    status: row.status,
    durationSeconds: row.duration_ms === null ? null : Number(row.duration_ms) / 1000,
    qualities: row.qualities.filter((quality) => order.indexOf(quality) <= most),
    sizeBytes: Number(row.size_bytes),
    failure: row.failure_code === null ? null : { code: row.failure_code, message: row.failure_message },
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
    readyAt: row.ready_at?.toISOString() ?? null,
    accessMode: 'protected',
  };
}

function send(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response
    .writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) })
    .end(text);
}

await serveSide(async (connectionString) => {
  const pool = new Pool({ connectionString, max: 10, idleTimeoutMillis: 30_000 });
  const server = createServer((request, response) => {
    answerTo(pool, request).then(
      ([status, body]) => {
        send(response, status, body);
      },
      () => {
        send(response, 500, { code: 'internal_error' });
      },
    );
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.closeAllConnections();
      await pool.end();
    },
  };
});
