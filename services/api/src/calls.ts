import { type ApiKeyScope, type OperationId, type RouteDefinition, type Routes } from '@millrace/contract';
import { type UploadClaims } from '@millrace/domain';
import { type Handler } from '@millrace/platform';
import { type Plan, type ProjectRow, type VideoView } from '@millrace/store';

interface KeyCaller {
  kind: 'key';
  keyId: string;
  scope: ApiKeyScope;
  accountId: string;
}
interface SessionCaller {
  kind: 'session';
  userId: string;
  accountId: string;
}
/** A browser with an upload token. */
interface UploadTokenCaller {
  kind: 'upload_token';
  accountId: string;
  claims: UploadClaims;
}
type CustomerCaller = KeyCaller | SessionCaller | UploadTokenCaller;

/** `actor` is what the audit log says. */
export interface AdminCaller {
  kind: 'admin';
  actor: string;
}

/** Of a call under `/v1/projects/{projectId}`. */
export interface ProjectContext {
  caller: CustomerCaller;
  project: ProjectRow;
  /** Whose limits the account has now. */
  plan: Plan;
}
/** Of a call on a route that `finds` its video: null when the project has no such one. */
export interface VideoContext {
  caller: CustomerCaller;
  video: VideoView | null;
}
/** Of a call on a route of the account. */
export interface AccountContext {
  caller: SessionCaller;
  plan: Plan;
}

/** What the guard adds to a call, by the route. */
type ContextOf<R extends RouteDefinition> = R extends { finds: 'video' }
  ? VideoContext
  : R['path'] extends `/v1/projects/{projectId}${string}`
    ? ProjectContext
    : R['auth'] extends readonly ['session']
      ? AccountContext
      : R['auth'] extends readonly ['admin']
        ? { caller: AdminCaller }
        : unknown;

/** The handler of every route, by operation id. */
export type ApiHandlers = { [K in OperationId]: Handler<Routes[K], ContextOf<Routes[K]>> };
