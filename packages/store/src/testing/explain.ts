import { type Database, type Queryable } from '../index.ts';
import { claim, db } from './encode-queue.ts';

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
  Plans?: PlanNode[];
}
const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** What a statement reads: in blocks, and which tables as a whole. */
interface Reading {
  blocks: number;
  scanned: string[];
}

/** Executes a statement to see what it reads. */
export async function explain(store: Queryable, text: string, values?: readonly unknown[]): Promise<Reading> {
  const { rows } = await store.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
    `explain (analyze, buffers, format json) ${text}`,
    values,
  );
  const root = rows[0]?.['QUERY PLAN'][0].Plan;
  if (root === undefined) throw new Error('no plan');
  const scans = nodesOf(root).filter((node) => node['Node Type'] === 'Seq Scan');
  return {
    blocks: root['Shared Hit Blocks'] + root['Shared Read Blocks'],
    scanned: scans.map((node) => node['Relation Name'] ?? ''),
  };
}

/** What the claim's own statement reads. */
export async function explainClaim(): Promise<Reading> {
  let reading: Reading | undefined;
  const store: Database = {
    ...db,
    transaction: (work) =>
      db.transaction((tx) =>
        work({
          ...tx,
          query: async (text, values, name) => {
            if (name !== 'task-claim') return tx.query(text, values, name);
            reading = await explain(tx, text, values);
            return { rows: [], rowCount: 0 };
          },
        }),
      ),
  };
  await claim('standard', store);
  if (reading === undefined) throw new Error('nothing was claimed');
  return reading;
}
