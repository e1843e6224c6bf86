import { type Database } from '../index.ts';
import { claim, db } from './encode-queue.ts';

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
  Plans?: PlanNode[];
}
const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** What the claim's own statement reads, as PostgreSQL executes it: in blocks, and which tables as a whole. */
export async function explainClaim(): Promise<{ blocks: number; scanned: string[] }> {
  let root: PlanNode | undefined;
  const store: Database = {
    ...db,
    transaction: (work) =>
      db.transaction((tx) =>
        work({
          ...tx,
          query: async (text, values, name) => {
            if (name !== 'task-claim') return tx.query(text, values, name);
            const explain = `explain (analyze, buffers, format json) ${text}`;
            const { rows } = await tx.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(explain, values);
            root = rows[0]?.['QUERY PLAN'][0].Plan;
            return { rows: [], rowCount: 0 };
          },
        }),
      ),
  };
  await claim('standard', store);
  if (root === undefined) throw new Error('nothing was claimed');
  const scans = nodesOf(root).filter((node) => node['Node Type'] === 'Seq Scan');
  return {
    blocks: root['Shared Hit Blocks'] + root['Shared Read Blocks'],
    scanned: scans.map((node) => node['Relation Name'] ?? ''),
  };
}
