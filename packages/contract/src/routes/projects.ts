import { z } from 'zod';
import { project } from '../resources.ts';
import { text } from '../text.ts';
import { defineRoutes, pageOf, pageQuery } from './route.ts';

const name = text({ max: 100 });
/** Checked as it was written and kept so: `z.url` would drop white space and hide what stands there. */
const httpsUrl = z
  .string()
  .max(2048)
  .regex(/^[^\s\u0000-\u001f\u007f\\]+$/, 'has white space or a backslash')
  .refine(isHttps, 'is no https address of a host, without user info')
  .meta({ description: 'An https address.', format: 'uri' });

function isHttps(text: string): boolean {
  const url = URL.parse(text);
  if (url?.protocol !== 'https:' || !/^https:/i.test(text)) return false;
  return url.username === '' && url.password === '' && z.regexes.domain.test(url.hostname);
}

export const projectRoutes = defineRoutes({
  createProject: {
    method: 'post',
    path: '/v1/projects',
    summary: 'Create a project',
    tag: 'Projects',
    auth: ['session'],
    cors: 'dashboard',
    body: z.strictObject({ name }),
    response: { status: 201, body: project, description: 'The new project.' },
    errors: ['plan_limit_reached'],
  },
  listProjects: {
    method: 'get',
    path: '/v1/projects',
    summary: 'List the projects of the account, newest first',
    tag: 'Projects',
    auth: ['session'],
    cors: 'dashboard',
    query: z.object(pageQuery),
    response: { status: 200, body: pageOf(project), description: 'One page of projects.' },
  },
  getProject: {
    method: 'get',
    path: '/v1/projects/{projectId}',
    summary: 'Get a project',
    tag: 'Projects',
    auth: ['key', 'session'],
    cors: 'dashboard',
    response: { status: 200, body: project, description: 'The project.' },
  },
  updateProject: {
    method: 'patch',
    path: '/v1/projects/{projectId}',
    summary: 'Rename or brand a project',
    tag: 'Projects',
    auth: ['session'],
    cors: 'dashboard',
    body: z.strictObject({
      name: name.optional(),
      branding: z
        .strictObject({
          hideLogo: z.boolean().optional(),
          primaryColor: z
            .string()
            .regex(/^#[0-9A-Fa-f]{6}$/)
            .nullable()
            .optional(),
          logoUrl: httpsUrl.nullable().optional(),
        })
        .optional()
        .meta({ description: 'Fields left out stay as they are; null takes a value away.' }),
    }),
    response: { status: 200, body: project, description: 'The project as it is now.' },
    errors: ['plan_limit_reached'],
  },
  deleteProject: {
    method: 'delete',
    path: '/v1/projects/{projectId}',
    summary: 'Delete an empty project',
    tag: 'Projects',
    auth: ['session'],
    cors: 'dashboard',
    response: { status: 204, description: 'The project, its keys and its domains are gone.' },
    errors: ['project_not_empty'],
  },
});
