import { describe, expect, it } from '@jest/globals';
import { isInternal, type RouteDefinition, routes } from './index.ts';

const all = Object.entries(routes as Record<string, RouteDefinition>);
const statusesOf = (which: (id: string, route: RouteDefinition) => boolean): Record<string, number> =>
  Object.fromEntries(
    all.filter(([id, route]) => which(id, route)).map(([id, { response }]) => [id, response.status]),
  );
const each = (statuses: Record<string, number>, status: number): void => {
  expect(Object.keys(statuses).length).toBeGreaterThan(0);
  expect(statuses).toEqual(Object.fromEntries(Object.keys(statuses).map((id) => [id, status])));
};

const creates = /^(create|add|start|file)(?!Phone|SignIn)/;
const queues = /^(test|redeliver|erase)/;
/** Ends an act of the team and answers what it was about. */
const takesBack = /^(lift|unban|resume)/;

describe('what success answers', () => {
  it('is 201 for everything that is created [CNV-029]', () => {
    each(
      statusesOf((id) => creates.test(id)),
      201,
    );
  });

  it('is 202 for what is queued [CNV-030]', () => {
    each(
      statusesOf((id) => queues.test(id)),
      202,
    );
  });

  it('is 204 without a body for what is deleted [CNV-031]', () => {
    each(
      statusesOf((id, { method }) => method === 'delete' && !takesBack.test(id)),
      204,
    );
    const bodies = all.filter(([, { response }]) => response.status === 204 && response.body !== undefined);
    expect(bodies).toEqual([]);
  });

  it('is 200 for everything else [CNV-032]', () => {
    each(
      statusesOf(
        (id, { method, path }) =>
          ![creates, queues].some((other) => other.test(id)) &&
          !(method === 'delete' && !takesBack.test(id)) &&
          !path.startsWith('/auth/'),
      ),
      200,
    );
  });
});

describe('where routes are', () => {
  it('is /v1 and /auth for customers, with only documentation and health beside them [VER-002]', () => {
    const beside = all
      .filter(([, route]) => !isInternal(route) && !/^\/(v1|auth)\//.test(route.path))
      .map(([, { path }]) => path);
    expect(beside.sort()).toEqual(['/docs', '/docs/start.js', '/errors/{code}', '/health', '/openapi.json']);
  });
});
