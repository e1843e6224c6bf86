import { ProblemError } from '@millrace/contract';
import { createProject, deleteProject, listProjects, projectResource, updateProject } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { readPage } from '../paging.ts';

type ProjectHandlers = Pick<
  ApiHandlers,
  'createProject' | 'listProjects' | 'getProject' | 'updateProject' | 'deleteProject'
>;

export const projectHandlers = ({ store, clock, config }: FeatureDeps): ProjectHandlers => ({
  createProject: async ({ caller, plan, body }) => {
    const { accountId } = caller;
    const project = await store.transaction((tx) =>
      createProject(tx, { accountId, name: body.name, now: clock.now() }),
    );
    return projectResource(project, plan);
  },

  listProjects: ({ caller: { accountId }, plan, query }) =>
    readPage(config.CURSOR_KEYS, {
      scope: { operationId: 'listProjects', owner: accountId },
      query,
      read: (limit, after) => listProjects(store, { accountId, limit, after }),
      toResource: (project) => projectResource(project, plan),
    }),

  getProject: ({ project, plan }) => Promise.resolve(projectResource(project, plan)),

  updateProject: async ({ project, plan, body: { name, branding } }) => {
    if (branding !== undefined && !plan.whiteLabel) {
      throw new ProblemError('plan_limit_reached', { detail: 'The plan has no white label.' });
    }
    const changes = {
      projectId: project.id,
      ...(name === undefined ? {} : { name }),
      ...(branding === undefined ? {} : { branding: definedOnly(branding) }),
    };
    return projectResource(await store.transaction((tx) => updateProject(tx, changes)), plan);
  },

  deleteProject: async ({ caller, project }) => {
    const input = { accountId: caller.accountId, projectId: project.id, now: clock.now() };
    await store.transaction((tx) => deleteProject(tx, input));
    return undefined;
  },
});

/** The same object without the fields that are `undefined`. */
type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };
const definedOnly = <T extends object>(value: T): Defined<T> =>
  Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as Defined<T>;
