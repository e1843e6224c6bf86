import {
  type Account,
  type ApiKey,
  type ApiKeyScope,
  type Domain,
  type PlanStatus,
  text,
  type Project,
  ProblemError,
  type User,
} from '@millrace/contract';
import { type Clock } from '@millrace/platform';
import {
  accountResource,
  addDomain,
  apiKeyResource,
  banAccount,
  createAccount,
  createApiKey,
  createProject,
  createSession,
  type Database,
  domainResource,
  findAnyProject,
  planOfAccount,
  projectResource,
  type ProjectRow,
  setPlan,
  type Transaction,
  userResource,
  writeAudit,
} from '@millrace/store';
import { z } from 'zod';
import { normalizeHostname } from './domains/hostname.ts';

/**
 * What the operator may do from the command line. The rules are the API's own; each act is audited in its
 * transaction. Every function throws `ProblemError` for what cannot be done.
 */
export interface Operator {
  /** @param input.planId `free` unless told */
  createAccount(input: {
    name: string;
    email: string;
    planId?: string;
  }): Promise<{ account: Account; user: User }>;
  setPlan(input: { accountId: string; planId: string; planStatus?: PlanStatus }): Promise<Account>;
  banAccount(input: { accountId: string; banned: boolean; reason?: string }): Promise<Account>;
  /** `cookie` is the value of `svc_session`. */
  createSession(input: { userId: string }): Promise<{ cookie: string }>;
  createProject(input: { accountId: string; name: string }): Promise<Project>;
  createApiKey(input: {
    projectId: string;
    name: string;
    scope: ApiKeyScope;
    expiresAt?: Date;
  }): Promise<ApiKey & { value: string }>;
  /** @param input.verified take the operator's word instead of a record's */
  addDomain(input: { projectId: string; hostname: string; verified?: boolean }): Promise<Domain>;
}

const name = text({ max: 100 });
const email = z.email().max(254);

/** The operator's use-cases over the record. */
export function createOperator({ store, clock }: { store: Database; clock: Clock }): Operator {
  const act = <T>(work: (tx: Transaction, now: Date) => Promise<T>): Promise<T> =>
    store.transaction((tx) => work(tx, clock.now()));
  const audit = (tx: Transaction, action: string, subject: string, details: object = {}): Promise<void> =>
    writeAudit(tx, { actor: 'operator', action, subject, details });
  return {
    createAccount: (input) =>
      act(async (tx, now) => {
        const { account, user } = await createAccount(tx, {
          name: valid('name', name, input.name),
          email: valid('email', email, input.email),
          planId: input.planId ?? 'free',
          now,
        });
        await audit(tx, 'account.create', account.id, { planId: account.planId });
        return { account: accountResource(account), user: userResource(user) };
      }),
    setPlan: (input) =>
      act(async (tx) => accountResource(await setPlan(tx, { ...input, actor: 'operator' }))),
    banAccount: (input) =>
      act(async (tx) => accountResource(await banAccount(tx, { ...input, actor: 'operator' }))),
    createSession: ({ userId }) =>
      act(async (tx, now) => {
        await audit(tx, 'session.create', userId);
        return createSession(tx, { userId, now });
      }),
    createProject: (input) =>
      act(async (tx, now) => {
        const { accountId } = input;
        const project = await createProject(tx, { accountId, name: valid('name', name, input.name), now });
        await audit(tx, 'project.create', project.id, { accountId });
        return projectResource(project, await planOfAccount(tx, accountId));
      }),
    createApiKey: (input) =>
      act(async (tx, now) => {
        const { projectId, scope, expiresAt = null } = input;
        const { key, value } = await createApiKey(tx, {
          ...{ projectId, scope, expiresAt, now },
          name: valid('name', name, input.name),
        });
        await audit(tx, 'key.create', key.id, { projectId, scope });
        return { ...apiKeyResource(key), value };
      }),
    addDomain: (input) =>
      act(async (tx, now) => {
        const { id: projectId, accountId } = await projectOf(tx, input.projectId);
        const { verified = false } = input;
        const hostname = normalizeHostname(input.hostname);
        const domain = await addDomain(tx, { accountId, projectId, hostname, verified, now });
        await audit(tx, 'domain.add', domain.id, { projectId, hostname, verified });
        return domainResource(domain);
      }),
  };
}

async function projectOf(tx: Transaction, projectId: string): Promise<ProjectRow> {
  const project = await findAnyProject(tx, projectId);
  if (project === null) throw new ProblemError('not_found');
  return project;
}

function valid<T>(path: string, schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const errors = result.error.issues.map(({ message }) => ({ path, message }));
  const detail = `${path}: ${errors.map(({ message }) => message).join('; ')}`;
  throw new ProblemError('invalid_request', { detail, errors });
}
