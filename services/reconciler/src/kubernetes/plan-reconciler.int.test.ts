import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { silentLogger, systemClock } from '@millrace/platform';
import { acquireLease } from '@millrace/store';
import { reconcile } from '../loops/loop.ts';
import { type KubernetesApi, type KubernetesObject, type ObjectEvent } from './api.ts';
import { type ObjectCache } from './object-cache.ts';
import { planReconciler } from './plan-reconciler.ts';
import { createTestRecord, type TestRecord } from './testing/record.ts';

let record: TestRecord;
beforeAll(async () => {
  record = await createTestRecord();
});
afterAll(() => record.close());

it('says of limits that the record cannot hold that they are refused, once', async () => {
  let object: KubernetesObject = {
    metadata: {
      ...{ name: 'pro', namespace: 'default', uid: 'u', generation: 1, resourceVersion: '7' },
      ...{ creationTimestamp: '2030-01-01T00:00:00Z', finalizers: [] },
    },
    spec: {
      ...{ storedSeconds: 10, uploadSecondsPerPeriod: 10, watchedMinutesPerPeriod: 10 },
      ...{ verifiedDomains: 1, projects: 1, maxQuality: '720p', whiteLabel: false },
      // The last is one that no definition lets through; PostgreSQL's `integer` ends before it.
      ...{ maxFileBytes: 1, encodeJobs: 1, maxSourceSeconds: 3_000_000_000 },
    },
  };
  const told: Pick<ObjectEvent, 'reason' | 'type'>[] = [];
  const api: Pick<KubernetesApi, 'writeStatus' | 'tell'> = {
    writeStatus: (_kind, before, status) => Promise.resolve({ ...before, status }),
    tell: ({ reason, type }) => {
      told.push({ reason, type });
      return Promise.resolve();
    },
  };
  const cache: Pick<ObjectCache, 'get' | 'put'> = {
    get: () => object,
    put: (written) => {
      object = written;
    },
  };
  const { store } = record;
  const epoch = await acquireLease(store, { name: 'operator', holder: 'this test', ttlMs: 600_000 });
  const reconciler = planReconciler(
    {
      ...{ api: api as KubernetesApi, store, logger: silentLogger, clock: systemClock },
      lease: { lease: 'operator', epoch: epoch ?? 0 },
    },
    cache as ObjectCache,
  );

  const turn = (): Promise<boolean | null> => reconcile(reconciler, 'pro', () => new Date());
  expect([await turn(), await turn()]).toEqual([false, false]);
  expect(object.status).toMatchObject({
    observedGeneration: 1,
    conditions: [{ type: 'Applied', status: 'False', reason: 'Refused' }],
  });
  expect(told).toEqual([{ reason: 'Refused', type: 'Warning' }]);
});
