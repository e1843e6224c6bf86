import { describe, expect, it } from '@jest/globals';
import { createMetrics } from '@millrace/platform';
import { type Kind, type KubernetesObject } from './api.ts';
import { type Asks, showNotApplied } from './not-applied.ts';
import { asksOfPlans } from './plan.ts';
import { asksOfVideoHolds } from './video-hold.ts';

/** What is shown of a kind, zeros left out, and the way to say what is known. */
function setUp(kind: Kind, asks: Asks) {
  const metrics = createMetrics({ service: 'reconciler' });
  const know = showNotApplied(metrics, kind, asks);
  const shown = async (): Promise<Record<string, number>> =>
    Object.fromEntries(
      [
        ...(await metrics.render()).matchAll(
          /^millrace_kubernetes_objects_not_applied\{kind="(\w+)",reason="(\w+)",.*\} (\d+)$/gm,
        ),
      ].map(([, of = '', reason = '', count]) => [`${of}/${reason}`, Number(count)]),
    );
  const trouble = async (): Promise<Record<string, number>> =>
    Object.fromEntries(Object.entries(await shown()).filter(([, count]) => count > 0));
  return { know, shown, trouble };
}
const object = (status: unknown, metadata: Partial<KubernetesObject['metadata']> = {}): KubernetesObject => ({
  metadata: {
    ...{ name: 'a', uid: 'u', namespace: 'default', generation: 2, resourceVersion: '1' },
    ...{ creationTimestamp: '2030-01-01T00:00:00Z', finalizers: [] },
    ...metadata,
  },
  spec: {},
  status,
});
const says = (reason: string, status = 'False', type = 'Held', observedGeneration = 2): object => ({
  observedGeneration,
  conditions: [{ type, status, reason, message: '', lastTransitionTime: '2030-01-01T00:00:00Z' }],
});
const deletionTimestamp = '2030-01-02T00:00:00Z';

describe('what is shown of objects that are not applied', () => {
  it('is zero of each reason from the start', async () => {
    const holds = ['InvalidSpec', 'VideoNotFound', 'VideoDeleted', 'VideoFailed', 'EditNotApplied'];
    expect(await setUp('VideoHold', asksOfVideoHolds).shown()).toEqual(
      Object.fromEntries([...holds, 'Pending', 'Other'].map((reason) => [`VideoHold/${reason}`, 0])),
    );
    const plans = ['InvalidSpec', 'PlanNotFound', 'Stale', 'Superseded', 'Refused'];
    expect(await setUp('Plan', asksOfPlans).shown()).toEqual(
      Object.fromEntries([...plans, 'Pending', 'Other'].map((reason) => [`Plan/${reason}`, 0])),
    );
  });

  it.each([
    ['Pending', 'nothing is said of it', object(undefined)],
    ['Pending', 'nothing is said of its edit', object(says('Held', 'True', 'Held', 1))],
    ['Pending', 'nothing is said of its hold', object(says('Confirmed', 'True', 'Effective'))],
    ['VideoNotFound', 'its video is not there', object(says('VideoNotFound'))],
    ['EditNotApplied', 'it holds as before its edit', object(says('EditNotApplied', 'True'))],
    ['Other', 'another version says another thing', object(says('Unheard'))],
    [
      'Pending',
      'it is to be released',
      object(says('Held', 'True'), { deletionTimestamp, finalizers: ['millrace.dev/release'] }),
    ],
  ])('is %s when %s', async (reason, _why, seen) => {
    const { know, trouble } = setUp('VideoHold', asksOfVideoHolds);
    know('a', seen);
    expect(await trouble()).toEqual({ [`VideoHold/${reason}`]: 1 });
  });

  it('is nothing of what is applied, and of what nobody waits for', async () => {
    const { know, trouble } = setUp('VideoHold', asksOfVideoHolds);
    know('a', object(says('Held', 'True')));
    know('b', object(undefined, { deletionTimestamp, finalizers: ['other/one'] }));
    expect(await trouble()).toEqual({});
  });

  it('follows each object, and forgets it when it is gone', async () => {
    const { know, trouble } = setUp('Plan', asksOfPlans);
    for (const name of ['free', 'pro']) know(name, object(says('Stale', 'False', 'Applied')));
    know('pro', object(says('Stale', 'False', 'Applied')));
    expect(await trouble()).toEqual({ 'Plan/Stale': 2 });
    know('pro', object(says('Applied', 'True', 'Applied')));
    expect(await trouble()).toEqual({ 'Plan/Stale': 1 });
    know('free', object(says('Superseded', 'False', 'Applied')));
    expect(await trouble()).toEqual({ 'Plan/Superseded': 1 });
    know('free', null);
    know('never-seen', null);
    expect(await trouble()).toEqual({});
  });
});
