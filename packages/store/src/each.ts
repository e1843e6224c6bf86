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
): Promise<number> {
  const failures: unknown[] = [];
  let changed = 0;
  for (const item of items) {
    try {
      changed += await work(item);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0)
    throw new AggregateError(failures, `${failures.length} of ${items.length} were left`);
  return changed;
}
