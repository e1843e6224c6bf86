import { ProblemError, type RouteDefinition } from '@millrace/contract';
import { isOriginOf, matchesHash, parseApiKey } from '@millrace/domain';
import { type Admission, type Guard, type GuardedRequest } from '@millrace/platform';
import {
  findKeyHolder,
  findProject,
  findSessionHolder,
  findVideo,
  type KeyHolder,
  keyHoldersOfVideos,
  type SessionHolder,
  touchApiKey,
  touchSession,
} from '@millrace/store';
import { type AccountContext, type ProjectContext, type VideoContext } from '../calls.ts';
import { type ApiDeps } from '../deps.ts';
import { refuseBanned } from './bans.ts';
import { bearerOf, cookieOf, sessionCookie } from './credentials.ts';
import { refuseBannedDevice } from './device.ts';
import { admitUploadToken, uploadClaimsOf } from './upload-token.ts';

type GuardDeps = Pick<ApiDeps, 'config' | 'store' | 'clock'> & {
  findKeyHolderOfVideo: ReturnType<typeof keyHoldersOfVideos>;
};

/** `lastUsedAt` and a session's end are written down at most this often; a write per request would cost more than it. */
const touchEveryMs = 60_000;

/**
 * Who may call a customer's route: 401, then the ban, then 404 outside the caller's project, then the scope
 * (contract AUT-010). Everything is read from the record for each request, so that a revoked key or a ban
 * counts at once. A Bearer credential beats a cookie.
 */
export function createCustomerGuard(given: Omit<GuardDeps, 'findKeyHolderOfVideo'>): Guard {
  const deps: GuardDeps = { ...given, findKeyHolderOfVideo: keyHoldersOfVideos(given.store) };
  return async (route, request) => {
    if (route.auth.length === 0) return { context: {}, jsonOnly: false };
    const bearer = bearerOf(request.headers);
    if (bearer === null) return admitSession(deps, route, request);
    const claims = route.auth.includes('upload_token') ? uploadClaimsOf(deps, bearer) : null;
    return claims === null ? admitKey(deps, route, request, bearer) : admitUploadToken(deps, request, claims);
  };
}

async function admitKey(
  deps: GuardDeps,
  route: RouteDefinition,
  request: GuardedRequest,
  bearer: string,
): Promise<Admission> {
  const { holder, ...found } = await keyHolderOf(deps, route, request, bearer);
  // A playback-only key hears 403 wherever it may not go; a full one is no credential for a session's route.
  if (!route.auth.includes('key') && holder.scope === 'full') throw unauthorized();
  refuseBanned(holder);
  const projectId = request.params['projectId'];
  if (projectId !== undefined && projectId !== holder.projectId) throw new ProblemError('not_found');
  const allowed = route.auth.includes('key') && (holder.scope === 'full' || route.keyScope === 'playback');
  if (!allowed) throw new ProblemError('insufficient_scope');
  const now = deps.clock.now();
  if (isStale(holder.lastUsedAt, now)) {
    inBackground(request, 'key use not noted', touchApiKey(deps.store, holder.keyId, now));
  }
  const { keyId, scope, accountId } = holder;
  const caller = { kind: 'key', keyId, scope, accountId } as const;
  const context: ProjectContext | VideoContext = { caller, ...found };
  return { context, jsonOnly: false };
}

type FoundByKey = { holder: KeyHolder } & (Omit<ProjectContext, 'caller'> | Omit<VideoContext, 'caller'>);

/** Whose key it is, and what the route needs found beside it, in one look-up. */
async function keyHolderOf(
  { store, clock, findKeyHolderOfVideo }: GuardDeps,
  { finds }: RouteDefinition,
  { params }: GuardedRequest,
  bearer: string,
): Promise<FoundByKey> {
  const parsed = parseApiKey(bearer);
  if (parsed === null) throw unauthorized();
  const found =
    finds === 'video'
      ? await findKeyHolderOfVideo(parsed.id, params['videoId'] ?? '')
      : await findKeyHolder(store, parsed.id);
  if (found === null || !matchesHash(parsed.secret, found.holder.secretHash)) throw unauthorized();
  const { expiresAt, revokedAt } = found.holder;
  if (revokedAt !== null || (expiresAt !== null && expiresAt <= clock.now())) throw unauthorized();
  return found;
}

async function admitSession(
  deps: GuardDeps,
  route: RouteDefinition,
  request: GuardedRequest,
): Promise<Admission> {
  const cookie = cookieOf(request.headers, sessionCookie);
  const now = deps.clock.now();
  if (cookie === null || !route.auth.includes('session') || isForged(deps, request)) throw unauthorized();
  const session = await findSessionHolder(deps.store, cookie, now);
  if (session === null) throw unauthorized();
  refuseBanned(session);
  await refuseBannedDevice(deps, request.headers);
  if (isStale(session.lastSeenAt, now)) {
    inBackground(request, 'session use not noted', touchSession(deps.store, session, now));
  }
  return { context: await sessionContext(deps, session, route, request), jsonOnly: true };
}

async function sessionContext(
  { store }: GuardDeps,
  { userId, accountId, plan }: SessionHolder,
  { finds }: RouteDefinition,
  { params }: GuardedRequest,
): Promise<AccountContext | ProjectContext | VideoContext> {
  const caller = { kind: 'session', userId, accountId } as const;
  const projectId = params['projectId'];
  if (projectId === undefined) return { caller, plan };
  const project = await findProject(store, accountId, projectId);
  if (project === null) throw new ProblemError('not_found');
  if (finds === 'video') return { caller, video: await findVideo(store, projectId, params['videoId'] ?? '') };
  return { caller, project, plan };
}

/**
 * Whether another site may have made the browser send this (contract SES-005): a call that changes
 * something, from an origin that is neither the dashboard's nor the API's own.
 */
function isForged({ config }: GuardDeps, { method, headers }: GuardedRequest): boolean {
  if (method === 'GET' || method === 'HEAD') return false;
  if (headers['sec-fetch-site'] === 'cross-site') return true;
  const { origin } = headers;
  if (origin === undefined || origin === new URL(config.API_URL).origin) return false;
  return !config.DASHBOARD_HOSTS.some((host) => isOriginOf(origin, host));
}

const unauthorized = (): ProblemError => new ProblemError('unauthorized');

const isStale = (at: Date | null, now: Date): boolean =>
  at === null || now.getTime() - at.getTime() >= touchEveryMs;

/** Bookkeeping that must neither delay nor fail the request. */
function inBackground(request: GuardedRequest, message: string, work: Promise<void>): void {
  work.catch((error: unknown) => {
    request.log.warn({ err: error }, message);
  });
}
