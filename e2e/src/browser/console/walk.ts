import { type OperationId, type RouteDefinition, routes } from '@millrace/contract';
import { waitFor } from '@millrace/testing';
import { type Answered, type Input, type Step, type World } from './steps.ts';

const table: Readonly<Record<string, RouteDefinition>> = routes;

/** The operations of the route table that take this credential. */
export const operationsFor = (auth: 'key' | 'session'): OperationId[] =>
  Object.entries(table).flatMap(([id, route]) => (route.auth.includes(auth) ? [id as OperationId] : []));

/** Takes the steps one after the other. @throws Error at the first that is not answered as it has to be */
export async function walk(
  steps: readonly Step[],
  world: World,
  send: (id: OperationId, input: Input) => Promise<Answered>,
): Promise<void> {
  for (const { id, input = () => ({}), status = table[id]?.response.status, until, after } of steps) {
    const once = async (): Promise<Answered> => {
      const answered = await send(id, input(world));
      if (answered.status !== status)
        throw new Error(`${id} was answered ${answered.status}: ${JSON.stringify(answered.body)}`);
      return answered;
    };
    const { body } = until === undefined ? await once() : await waitUntil(id, once, until);
    await after?.(body, world);
  }
}

async function waitUntil(
  id: OperationId,
  once: () => Promise<Answered>,
  until: NonNullable<Step['until']>,
): Promise<Answered> {
  return waitFor(
    async () => {
      const answered = await once();
      if (!until(answered.body)) throw new Error(`it answered ${JSON.stringify(answered.body)}`);
      return answered;
    },
    { timeoutMs: 60_000, what: `${id} to answer what is waited for` },
  );
}

/** Calls routes with a key, from a server. */
export function keyCaller(
  apiAddress: string,
  bearer: string,
  { ids }: World,
): (id: OperationId, input: Input) => Promise<Answered> {
  return async (id, { params = {}, query = {}, body, raw }) => {
    const { method, path } = table[id] ?? { method: 'get', path: '/' };
    const target = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => params[name] ?? ids[name] ?? 'none');
    const response = await fetch(`${apiAddress}${target}?${new URLSearchParams(query).toString()}`, {
      method: method.toUpperCase(),
      headers: { authorization: `Bearer ${bearer}` },
      ...(body === undefined && raw === undefined ? {} : { body: raw ?? JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: JSON.parse(text || '{}') as Record<string, unknown> };
  };
}
