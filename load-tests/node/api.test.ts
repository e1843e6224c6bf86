import { describe, expect, it } from '@jest/globals';
import { type Routes, type RouteDefinition, routes } from '@millrace/contract';
import { type z } from 'zod';
import { type Api, createApi, createTeam, type Team } from '../src/api.ts';
import { createFakeWorld } from './fake-service.ts';

/** What a call is answered with by the contract, where it has a body that somebody reads. */
type Answered<Id extends keyof Routes> = Routes[Id] extends {
  response: { body: infer Body extends z.ZodType };
}
  ? z.output<Body>
  : never;
type Read<Call extends keyof Api> = Awaited<ReturnType<Api[Call]>>;
/** Compiles only while the contract's answers have what the scenarios read of them. */
const taken = {
  getVideo: (answer: Answered<'getVideo'>): Read<'getVideo'> => answer,
  listVideos: (answer: Answered<'listVideos'>): Read<'listVideos'> => answer,
  startUpload: (answer: Answered<'startUpload'>): Read<'startUpload'> => answer,
  completeUpload: (answer: Answered<'completeUpload'>): Read<'completeUpload'> => answer,
  createPlaybackToken: (answer: Answered<'createPlaybackToken'>): Read<'createPlaybackToken'> => answer,
  createEndpoint: (answer: Answered<'createWebhookEndpoint'>): Read<'createEndpoint'> => answer,
  testEndpoint: (answer: Answered<'testWebhookEndpoint'>): Read<'testEndpoint'> => answer,
  listDeliveries: (answer: Answered<'listWebhookDeliveries'>): Read<'listDeliveries'> => answer,
} satisfies { [Call in keyof Api]?: (answer: never) => Read<Call> };

const calls: Record<keyof Api, (api: Api) => Promise<unknown>> = {
  getProject: (api) => api.getProject(),
  listDomains: (api) => api.listDomains(),
  listVideos: (api) => api.listVideos('a b'),
  getVideo: (api) => api.getVideo('vid_1'),
  renameVideo: (api) => api.renameVideo('vid_1', 'Title'),
  deleteVideo: (api) => api.deleteVideo('vid_1'),
  startUpload: (api) => api.startUpload(1),
  completeUpload: (api) => api.completeUpload('upl_1', [{ partNumber: 1, etag: '"e"' }]),
  createUploadToken: (api) => api.createUploadToken(),
  createPlaybackToken: (api) => api.createPlaybackToken('vid_1'),
  listEndpoints: (api) => api.listEndpoints(),
  createEndpoint: (api) => api.createEndpoint('https://hooks.example'),
  deleteEndpoint: (api) => api.deleteEndpoint('whe_1'),
  testEndpoint: (api) => api.testEndpoint('whe_1'),
  listDeliveries: (api) => api.listDeliveries('whe_1', null),
};
const teamCalls: Record<keyof Team, (team: Team) => Promise<unknown>> = {
  hold: (team) => team.hold('vid_1'),
  lift: (team) => team.lift('vid_1'),
};

const routeOf = (method: string, path: string): RouteDefinition | undefined =>
  Object.values<RouteDefinition>(routes).find((route) => {
    const form = new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, '[^/?]+')}$`);
    return route.method === method.toLowerCase() && form.test(path.replace(/\?.*/, ''));
  });

describe('a call', () => {
  const all: [string, (world: Parameters<typeof createApi>[0]) => Promise<unknown>][] = [
    ...Object.entries(calls).map(([name, call]): (typeof all)[number] => [name, (w) => call(createApi(w))]),
    ...Object.entries(teamCalls).map(([name, call]): (typeof all)[number] => [
      name,
      (w) => call(createTeam(w)),
    ]),
  ];
  it.each(all)('%s is one of the contract’s, and made for its success', async (_, call) => {
    const known = createFakeWorld({
      instead: ({ method, path }) => ({ status: routeOf(method, path)?.response.status ?? 404, body: {} }),
    });
    await call(known.world);
    const [seen] = known.seen;
    const [route, body] = [routeOf(seen?.method ?? '', seen?.path ?? ''), seen?.body];
    expect(known.seen).toHaveLength(1);
    expect(route?.body?.safeParse(body).error).toBeUndefined();
    expect(body === undefined).toBe(route?.body === undefined);
    const other = createFakeWorld({ instead: () => ({ status: 299 }) });
    await expect(call(other.world)).rejects.toThrow('answered 299');
  });

  it.each(Object.keys(taken))('%s gives what was answered', async (name) => {
    const answer = { id: 'x', data: [] };
    const found = Object.entries(calls).find(([call]) => call === name)?.[1];
    const { world } = createFakeWorld({
      instead: ({ method, path }) => ({
        status: routeOf(method, path)?.response.status ?? 404,
        body: answer,
      }),
    });
    expect(await found?.(createApi(world))).toEqual(answer);
  });
});
