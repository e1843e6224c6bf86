import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { type KubernetesObject } from './api.ts';

/** One of an object's `status.conditions`. */
const condition = z.object({
  type: z.string(),
  status: z.enum(['True', 'False', 'Unknown']),
  /** CamelCase, for machines. */
  reason: z.string(),
  message: z.string(),
  observedGeneration: z.number().int().optional(),
  /** When `status` (not the reason) last changed. */
  lastTransitionTime: z.string(),
});

type Condition = z.output<typeof condition>;

const objectStatus = z.object({
  observedGeneration: z.number().optional(),
  conditions: z.array(condition).default([]),
});

/** A condition as it is decided, without when. */
export type Finding = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** The status that an object ought to have, and what of it is news. */
export interface StatusStep {
  type: 'status';
  status: object;
  /** Findings of another status or reason than the object had. */
  news: readonly Finding[];
}

/**
 * The status for these findings, or null when the object has it. A condition whose status is what it was keeps its
 * time.
 *
 * @param fields times of the status beside its conditions; null ones are left out
 */
export function decideStatus(
  object: KubernetesObject,
  {
    findings,
    fields = {},
    now,
  }: { findings: readonly Finding[]; fields?: Record<string, Date | null>; now: Date },
): StatusStep | null {
  const before = objectStatus.safeParse(object.status).data?.conditions ?? [];
  const { generation } = object.metadata;
  const times = Object.entries(fields).flatMap(([name, time]) =>
    time === null ? [] : [[name, timeOf(time)] as const],
  );
  const conditions = findings.map((finding): Condition => {
    const same = before.find(({ type, status }) => type === finding.type && status === finding.status);
    return {
      ...finding,
      observedGeneration: generation,
      lastTransitionTime: same?.lastTransitionTime ?? timeOf(now),
    };
  });
  const status = { observedGeneration: generation, ...Object.fromEntries(times), conditions };
  if (isDeepStrictEqual(status, object.status)) return null;
  const news = findings.filter(
    ({ type, status: value, reason }) =>
      !before.some((old) => old.type === type && old.status === value && old.reason === reason),
  );
  return { type: 'status', status, news };
}

/** What the status of an object says of it in its present generation, by one type of condition; null: nothing yet. */
export function findingOf({ metadata, status }: KubernetesObject, type: string): Finding | null {
  const told = objectStatus.safeParse(status).data;
  if (told?.observedGeneration !== metadata.generation) return null;
  return told.conditions.find((each) => each.type === type) ?? null;
}

/** A time as Kubernetes writes it: whole seconds. */
const timeOf = (time: Date): string => time.toISOString().replace(/\.\d+Z$/, 'Z');
