import { describe, expect, it } from '@jest/globals';
import { type PlanLimits, type PlanOwner } from '@millrace/store';
import { type KubernetesObject } from './api.ts';
import { decidePlan, type PlanDecision } from './plan.ts';

const now = new Date('2030-01-02T03:04:05.678Z');
const updatedAt = new Date('2030-01-01T10:00:00.000Z');
const rest: Omit<PlanLimits, 'name'> = {
  ...{ storedSeconds: 10, uploadSecondsPerPeriod: null, watchedMinutesPerPeriod: 5 },
  ...{ verifiedDomains: null, projects: 3, maxQuality: '2160p', whiteLabel: true },
  ...{ maxFileBytes: 1, maxSourceSeconds: 2, encodeJobs: 4 },
};
const limits: PlanLimits = { ...rest, name: 'Pro' };
const spec = { ...rest, uploadSecondsPerPeriod: 'unlimited', verifiedDomains: 'unlimited' };
const owner: PlanOwner = { uid: 'u', generation: 3, createdAt: new Date('2030-01-01T00:00:00Z') };

function decide(more: {
  spec?: object;
  owner?: PlanOwner | null;
  recorded?: Partial<PlanLimits>;
  deleted?: true;
}) {
  const object: KubernetesObject = {
    metadata: {
      ...{ name: 'pro', namespace: 'default', uid: 'u', generation: 3, resourceVersion: '7' },
      ...{ creationTimestamp: '2030-01-01T00:00:00Z', finalizers: [] },
      ...(more.deleted ? { deletionTimestamp: '2030-01-02T00:00:00Z' } : {}),
    },
    spec: { ...spec, ...more.spec },
    status: undefined,
  };
  const recorded = more.owner === undefined ? owner : more.owner;
  const record = { limits: { ...limits, ...more.recorded }, owner: recorded, updatedAt };
  return decidePlan({ object, record }, now);
}
const reason = (decision: PlanDecision | null): string | undefined =>
  decision?.type === 'status' ? decision.news[0]?.reason : decision?.type;

describe('a Plan', () => {
  it('takes a plan over that nobody owns', () => {
    expect(decide({ owner: null })).toEqual({ type: 'apply', limits, owner });
  });

  it('applies each new generation, and what the record has differently', () => {
    expect(reason(decide({ owner: { ...owner, generation: 2 } }))).toBe('apply');
    expect(reason(decide({ recorded: { projects: 4 } }))).toBe('apply');
  });

  it('names the plan when it has a name for it', () => {
    expect(decide({ spec: { displayName: 'Professional' } })).toMatchObject({
      limits: { name: 'Professional' },
    });
  });

  it('says when the record took its limits', () => {
    expect(decide({})).toMatchObject({
      status: { observedGeneration: 3, appliedAt: '2030-01-01T10:00:00Z' },
      news: [{ type: 'Applied', status: 'True' }],
    });
  });

  it('that is older than what the record has of it says so, as after a restore of Kubernetes', () => {
    expect(decide({ owner: { ...owner, generation: 4 } })).toMatchObject({
      status: { observedGeneration: 3 },
      news: [{ type: 'Applied', status: 'False', reason: 'Stale' }],
    });
  });

  it('does nothing while it is deleted', () => {
    expect(decide({ deleted: true, owner: null })).toBeNull();
  });

  it('gives way to an object that was made later, and takes over from one that was made before', () => {
    const other = (createdAt: string): PlanOwner => ({
      uid: 'v',
      generation: 9,
      createdAt: new Date(createdAt),
    });
    expect(reason(decide({ owner: other('2030-01-01T00:00:01Z') }))).toBe('Superseded');
    expect(reason(decide({ owner: other('2029-01-01T00:00:00Z') }))).toBe('apply');
  });

  it.each([
    ['a NUL', 'a\u0000b'],
    ['an escape', ' \u001b[31m'],
    ['a line break', 'a\nb'],
    ['nothing that can be seen', '  '],
    ['nothing', ''],
    ['too much', 'x'.repeat(101)],
  ])('has no name with %s', (_, displayName) => {
    expect(reason(decide({ spec: { displayName } }))).toBe('InvalidSpec');
  });

  it('that cannot be read, or is about no plan, says so', () => {
    expect(reason(decide({ spec: { projects: 'none' } }))).toBe('InvalidSpec');
    const object = { metadata: { name: 'x' }, spec } as unknown as KubernetesObject;
    expect(reason(decidePlan({ object, record: null }, now))).toBe('PlanNotFound');
  });
});
