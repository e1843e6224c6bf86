interface AtOnce {
  /** How many are under way at once, each with a connection; one unless told. */
  atOnce?: number;
  /** Ends it before the next one. */
  signal?: AbortSignal | undefined;
}

/**
 * Does one thing after another, each in a transaction of its own. One that fails does not keep those behind it waiting,
 * in this run and in every later one: the oldest is looked at first each time.
 *
 * @param work answers with how many things it changed
 * @returns how many were changed in all
 * @throws AggregateError after all the rest, when some failed
 */
export async function eachInTurn<T>(
  items: readonly T[],
  work: (item: T) => Promise<number>,
  { atOnce = 1, signal }: AtOnce = {},
): Promise<number> {
  const left = [...items].reverse();
  const failures: unknown[] = [];
  let changed = 0;
  const take = async (): Promise<void> => {
    while (left.length > 0 && signal?.aborted !== true) {
      try {
        // Not `changed += await`: others add to it meanwhile.
        const more = await work(left.pop() as T);
        changed += more;
      } catch (error) {
        failures.push(...causesOf(error));
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, take));
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} were left`);
  return changed;
}

/**
 * As `eachInTurn`, of all that a keyset of pages has, by id. What failed is not looked at again in this run.
 * @param page the next ones after an id, in their order; empty at the end
 */
export async function eachOfPages<T extends { id: string }>(
  page: (after: string) => Promise<readonly T[]>,
  work: (item: T) => Promise<number>,
  options: AtOnce = {},
): Promise<number> {
  const failures: unknown[] = [];
  let changed = 0;
  for (let after = ''; options.signal?.aborted !== true;) {
    const items = await page(after);
    const last = items.at(-1);
    if (last === undefined) break;
    after = last.id;
    try {
      changed += await eachInTurn(items, work, options);
    } catch (error) {
      failures.push(...causesOf(error));
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} were left`);
  return changed;
}

/** What some things failed with that were done in turn. */
const causesOf = (error: unknown): unknown[] =>
  error instanceof AggregateError ? (error.errors as unknown[]) : [error];
