import { isDeepStrictEqual } from 'node:util';
import { qualities } from '@millrace/contract';
import { type PlanLimits, type PlanOwner, type RecordedPlan } from '@millrace/store';
import { z } from 'zod';
import { type KubernetesObject } from './api.ts';
import { decideStatus, type Finding, type StatusStep } from './conditions.ts';
import { type Asks } from './not-applied.ts';

const limit = z
  .union([z.number().int().nonnegative(), z.literal('unlimited')])
  .transform((value) => (value === 'unlimited' ? null : value));

const planSpec = z.object({
  /** What customers call it; what it is called now, when it is not told. */
  displayName: z
    .string()
    .min(1)
    .max(100)
    // As the definition says: a visible character, and no control characters.
    .regex(/^(?=.*[^ ])\P{Cc}*$/u)
    .optional(),
  storedSeconds: limit,
  uploadSecondsPerPeriod: limit,
  watchedMinutesPerPeriod: limit,
  verifiedDomains: limit,
  projects: limit,
  maxQuality: z.enum(qualities),
  whiteLabel: z.boolean(),
  maxFileBytes: z.number().int().positive(),
  maxSourceSeconds: z.number().int().positive(),
  encodeJobs: z.number().int().positive(),
});

/** A `Plan` and the plan of its name in the record; null when there is none. */
export interface SeenPlan {
  object: KubernetesObject;
  record: RecordedPlan | null;
}

/** Why the record is not as a `Plan` asks. */
const reasonsNotApplied = ['InvalidSpec', 'PlanNotFound', 'Stale', 'Superseded', 'Refused'] as const;

/** By what a `Plan` says whether it is applied. */
export const asksOfPlans: Asks = { condition: 'Applied', reasons: reasonsNotApplied };

const notAppliedFor = (reason: (typeof reasonsNotApplied)[number], message: string): Finding => ({
  ...{ type: 'Applied', status: 'False', reason, message },
});

/** What is said of a Plan whose limits the record cannot hold. */
export const notHeldByRecord = notAppliedFor('Refused', 'The record cannot hold these limits.');

export type PlanDecision = { type: 'apply'; limits: PlanLimits; owner: PlanOwner } | StatusStep;

/**
 * What a `Plan` asks for: it owns the plan of its name, so that its limits replace the shipped ones and those of an
 * object that was made before it. Deleting it changes nothing.
 */
export function decidePlan({ object, record }: SeenPlan, now: Date): PlanDecision | null {
  if (object.metadata.deletionTimestamp !== undefined) return null;
  const spec = planSpec.safeParse(object.spec).data;
  const refuse = (...why: Parameters<typeof notAppliedFor>): PlanDecision | null =>
    decideStatus(object, { findings: [notAppliedFor(...why)], now });
  if (spec === undefined) return refuse('InvalidSpec', 'The spec is not one that this version can read.');
  if (record === null) return refuse('PlanNotFound', 'There is no plan of that name.');
  const { uid, generation, creationTimestamp } = object.metadata;
  const owner = { uid, generation, createdAt: new Date(creationTimestamp) };
  const standing = standingOf(record.owner, owner);
  if (standing === 'stale') {
    return refuse(
      'Stale',
      'The record has a later generation of this Plan, as after a restore of Kubernetes: delete it and make it anew.',
    );
  }
  if (standing === 'superseded') {
    return refuse(
      'Superseded',
      'The limits come from a Plan that was made later, in another namespace or cluster.',
    );
  }
  const { displayName = record.limits.name, ...rest } = spec;
  const limits: PlanLimits = { ...rest, name: displayName };
  if (standing !== 'current' || !isDeepStrictEqual(limits, record.limits))
    return { type: 'apply', limits, owner };
  const applied: Finding = {
    ...{ type: 'Applied', status: 'True', reason: 'Applied' },
    message: 'These are the limits of the plan.',
  };
  return decideStatus(object, { findings: [applied], fields: { appliedAt: record.updatedAt }, now });
}

function standingOf(
  recorded: PlanOwner | null,
  { uid, generation, createdAt }: PlanOwner,
): 'new' | 'current' | 'stale' | 'superseded' {
  if (recorded === null) return 'new';
  if (recorded.uid !== uid) return recorded.createdAt > createdAt ? 'superseded' : 'new';
  if (recorded.generation === generation) return 'current';
  return recorded.generation > generation ? 'stale' : 'new';
}
