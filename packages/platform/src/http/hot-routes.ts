import { type IncomingMessage } from 'node:http';

interface HotRoute {
  /** `/v1/things/{thingId}` */
  path: string;
  /** Upper case. */
  method: string;
}

/**
 * Finds the few routes that are asked so often that the router, which tries one path after the other, would cost as
 * much as all else: by exactly their method and a path without percent-encoding. What it does not find the router does.
 */
export function createHotRoutes<R extends HotRoute>(
  routes: readonly R[],
): (request: IncomingMessage) => { route: R; params: Record<string, string> } | null {
  const known = routes.map((route) => {
    const pattern = route.path
      .replaceAll(/[.*+?^$()|[\]\\]/g, '\\$&')
      .replaceAll(/\{(\w+)\}/g, '(?<$1>[^/?%#]+)');
    return { route, pattern: new RegExp(`^${pattern}(?:\\?|$)`) };
  });
  return ({ method, url = '' }) => {
    for (const { route, pattern } of known) {
      if (route.method !== method) continue;
      const params = pattern.exec(url)?.groups;
      if (params !== undefined) return { route, params };
    }
    return null;
  };
}
