import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { isInternal, parameterNames, type RouteDefinition, routes } from '@millrace/contract';
import { createEstate, type Estate, pathWith, type ProjectOperation } from '../testing/estate.ts';
import { recordOf, toldLater } from '../testing/record.ts';
import { type Answer, type Ask } from '../testing/test-api.ts';
import { createUploadBench, type UploadBench } from '../testing/upload-bench.ts';

let bench: UploadBench;
beforeAll(async () => {
  bench = await createUploadBench();
});
afterAll(() => bench.close());

const table = Object.entries(routes as Record<string, RouteDefinition>);
const ofProject = table.filter(([, { path }]) => path.startsWith('/v1/projects/{projectId}')) as [
  ProjectOperation,
  RouteDefinition,
][];
const outcome = ({ status, problem }: Answer): string =>
  status < 400 ? String(status) : `${status} ${problem.code}`;

/** Asks an operation with a body that it accepts, on ids of one estate or of several. */
const ask = (
  [id, { method, path, rawBody }]: [ProjectOperation, RouteDefinition],
  { bodies }: Estate,
  ids: Readonly<Record<string, string>>,
  credential: Ask,
): Promise<Answer> => {
  const body = bodies[id];
  return bench.api.ask(`${method.toUpperCase()} ${pathWith(path, ids)}`, {
    ...credential,
    ...(body === null ? {} : { body }),
    headers: { ...credential.headers, ...(rawBody === undefined ? {} : { 'content-type': 'text/vtt' }) },
  });
};

describe('every route of a project', () => {
  const estateFor = (id: ProjectOperation): Promise<Estate> =>
    createEstate(bench, { empty: id === 'deleteProject' });

  it.each(ofProject.filter(([, { auth }]) => auth.includes('key')))(
    '%s opens to a full-scope key of it [AUT-003]',
    async (id, route) => {
      const own = await estateFor(id);
      const answer = await ask([id, route], own, own.ids, { bearer: own.tenant.full });
      expect(outcome(answer)).toBe(String(route.response.status));
    },
  );

  it.each(ofProject)('%s opens to a session of its account [AUT-006]', async (id, route) => {
    const own = await estateFor(id);
    const answer = await ask([id, route], own, own.ids, { cookie: own.tenant.cookie });
    expect(outcome(answer)).toBe(String(route.response.status));
  });
});

describe('ids of somebody else', () => {
  let mine: Estate;
  /** Another project of my account. */
  let next: Estate;
  /** Of another account. */
  let theirs: Estate;
  beforeAll(async () => {
    mine = await createEstate(bench);
    next = await createEstate(bench, { owner: mine.tenant });
    theirs = await createEstate(bench);
  });

  /** Uses of keys and sessions are noted in the background, and are the caller's own. */
  const record = (): Promise<Record<string, string>> =>
    recordOf(bench.api.store, ['api_keys', 'sessions', ...toldLater]);
  const mySession = (): Ask => ({ cookie: mine.tenant.cookie });
  /** My credentials of one project alone, as far as the route has any use for them. */
  const myKeys = ({ auth, keyScope }: RouteDefinition, anyScope: boolean): Ask[] => [
    ...(auth.includes('key') ? [{ bearer: mine.tenant.full }] : []),
    ...(anyScope || keyScope === 'playback' ? [{ bearer: mine.tenant.playback }] : []),
    ...(auth.includes('upload_token')
      ? [{ bearer: mine.uploadToken, headers: { origin: `https://${mine.domain}` } }]
      : []),
  ];
  const isNotFound = async (
    operation: [ProjectOperation, RouteDefinition],
    of: Estate,
    asks: readonly { ids: Estate['ids']; caller: Ask }[],
  ): Promise<void> => {
    const before = await record();
    expect(asks.length).toBeGreaterThan(0);
    for (const { ids, caller } of asks) {
      expect([outcome(await ask(operation, of, ids, caller)), ids, caller]).toEqual([
        '404 not_found',
        ids,
        caller,
      ]);
    }
    expect(await record()).toEqual(before);
  };

  it.each(ofProject)(
    '%s is 404 in a project of another account, and changes nothing [AUT-002, AUT-008]',
    async (id, route) => {
      const callers = [mySession(), ...myKeys(route, true)];
      await isNotFound(
        [id, route],
        theirs,
        callers.map((caller) => ({ ids: theirs.ids, caller })),
      );
    },
  );

  it.each(ofProject)(
    '%s is 404 in another project of the account, for what opens one project, and changes nothing [AUT-002, AUT-008]',
    async (id, route) => {
      const asks = myKeys(route, true).map((caller) => ({ ids: next.ids, caller }));
      await isNotFound([id, route], next, asks);
    },
  );

  it.each(ofProject.filter(([, { path }]) => idsIn(path).length > 0))(
    '%s is 404 with them in the caller’s own project, and changes nothing [AUT-008, ERR-101]',
    async (id, route) => {
      const callers = [mySession(), ...myKeys(route, false)];
      const asks = [theirs, next].flatMap((foreign) =>
        someOf(idsIn(route.path)).flatMap((names) => {
          const strange = Object.fromEntries(names.map((name) => [name, foreign.ids[name] ?? '']));
          return callers.map((caller) => ({ ids: { ...mine.ids, ...strange }, caller }));
        }),
      );
      await isNotFound([id, route], mine, asks);
    },
  );

  it('are in the path of no other route of customers', () => {
    const others = table.filter(
      ([, route]) => !isInternal(route) && !route.path.startsWith('/v1/projects/{projectId}'),
    );
    const names = new Set(others.flatMap(([, { path }]) => parameterNames(path)));
    expect([...names].sort()).toEqual(['code', 'provider']);
  });

  it('are in no answer', async () => {
    const strange = [...Object.values(theirs.ids), theirs.tenant.accountId, theirs.domain];
    const reads = table.filter(([, { method, auth }]) => method === 'get' && auth.includes('session'));
    for (const [, { path }] of reads) {
      const { status, body } = await bench.api.ask(`GET ${pathWith(path, mine.ids)}`, mySession());
      expect([path, status]).toEqual([path, 200]);
      for (const id of strange) expect(JSON.stringify(body)).not.toContain(id);
    }
  });
});

/** The names of ids that a path has after the project's. */
function idsIn(path: string): string[] {
  return parameterNames(path).filter((name) => name !== 'projectId' && name !== 'language');
}

/** Every choice of at least one of them. */
function someOf(names: readonly string[]): string[][] {
  const choices = names.reduce<string[][]>(
    (all, name) => [...all, ...all.map((choice) => [...choice, name])],
    [[]],
  );
  return choices.slice(1);
}
