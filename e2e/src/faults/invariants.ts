import { bucketRules } from './invariants-bucket.ts';
import { eventRules } from './invariants-events.ts';
import { queueRules } from './invariants-queues.ts';
import { usageRules } from './invariants-usage.ts';
import { videoRules } from './invariants-videos.ts';
import { type Ledger } from './ledger.ts';
import { type World } from './world.ts';

/** What must hold once nothing is under way any more, each as the violations of it: sentences for people. */
const rules = { ...videoRules, ...eventRules, ...usageRules, ...bucketRules, ...queueRules };

export type Rule = keyof typeof rules;
export const ruleNames = Object.keys(rules) as Rule[];

export interface Violation {
  rule: Rule;
  what: string;
}

/** Compares what the service holds with what its customer knows. Nothing when all is well. */
export const findViolations = (world: World, ledger: Ledger): Violation[] =>
  ruleNames.flatMap((rule) => rules[rule](world, ledger).map((what) => ({ rule, what })));
