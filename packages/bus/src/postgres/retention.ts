import { type Runner } from './connections.ts';
import * as sql from './statements.ts';

export interface Pruned {
  messages: number;
  /** Groups whose offsets were forgotten. */
  groups: number;
}

const batchMessages = 5_000;
/** Batches of one call: a bound on its duration. */
const maximumBatches = 200;

/** See `PostgresBus.prune`. */
export async function prune(runner: Runner, olderThan: Date): Promise<Pruned> {
  const partitions = await runner.run<{ id: number }>(sql.allPartitions, []);
  let messages = 0;
  let batches = 0;
  for (const { id } of partitions) {
    let deleted: number;
    do {
      if (batches === maximumBatches) break;
      const [row] = await runner.run<{ messages: number }>(sql.prunePartition, [
        id,
        olderThan,
        batchMessages,
      ]);
      deleted = row?.messages ?? 0;
      messages += deleted;
      batches += 1;
    } while (deleted === batchMessages);
  }
  const groups = await runner.run(sql.forgetGroups, []);
  return { messages, groups: groups.length };
}
