import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { confirmPlaybackState } from '@millrace/store';
import { waitFor } from '@millrace/testing';
import { missingForKubernetes } from '../../../../dev/kubernetes/control-plane.ts';
import { describeWith } from '../../../../dev/real-part.ts';
import { serverProcess, type ServerProcess, untilSaid } from '../../../../dev/server-process.ts';
import { type KubernetesApi, type KubernetesError } from './api.ts';
import { createClientNodeApi } from './client-node-api.ts';
import { conditionsOf, type SeenObject, startTestCluster, type TestCluster } from './testing/cluster.ts';
import { createTestRecord, type TestRecord } from './testing/record.ts';
import { startOperator } from './testing/start-operator.ts';
import { layWire } from './testing/wire.ts';

const buildMs = 30 * 60_000;
const testMs = 300_000;
const forEvents = { timeoutMs: 120_000 };
/** Well before the client itself ends a watch, after 30 s of silence. */
const beforeIdleMs = 27_000;
const withoutFinalizers = JSON.stringify([{ op: 'remove', path: '/rules/1' }]);
const script = fileURLToPath(new URL('testing/operator-process.ts', import.meta.url));

describeWith(missingForKubernetes(), 'the operator, when things break', () => {
  let cluster: TestCluster;
  let record: TestRecord;
  beforeAll(async () => {
    [cluster, record] = await Promise.all([startTestCluster(), createTestRecord()]);
  }, buildMs);
  afterAll(async () => {
    await Promise.all([cluster.stop(), record.close()]);
  });

  const start = (
    resyncMs: number,
    kubeconfig = cluster.plane.kubeconfig,
    through = (api: KubernetesApi) => api,
  ): ReturnType<typeof startOperator> =>
    startOperator({
      ...{ connectionString: record.connectionString, kubeconfig, resyncMs, logger: silentLogger, through },
    });
  /** A reconciler as a process that leads, or waits to. */
  const startProcess = async (words: string): Promise<ServerProcess> => {
    const args = [script, record.connectionString, cluster.plane.kubeconfig, '600000'];
    const operator = serverProcess({
      command: [process.execPath, ...args],
      env: { PATH: process.env['PATH'] ?? '' },
      detached: false,
      untilReady: (child) => untilSaid(child, { name: 'the operator', words, withinMs: 60_000 }),
    });
    await operator.start();
    return operator;
  };
  const held = (name: string): Promise<SeenObject> =>
    waitFor(async () => {
      const object = await cluster.find('VideoHold', name);
      return conditionsOf(object).startsWith('Held=True') ? object : null;
    }, forEvents);
  const hold = async (name: string, spec: object = {}): Promise<string> => {
    const videoId = await record.newVideo();
    await cluster.create('VideoHold', name, { videoId, ...spec });
    return videoId;
  };

  it(
    'makes true what was applied, edited and deleted while it was away',
    async () => {
      const first = await start(600_000);
      const [edited, gone] = await Promise.all([
        hold('edited-later'),
        hold('deleted-later', { onDelete: 'Release' }),
      ]);
      await Promise.all([held('edited-later'), held('deleted-later')]);
      await first.stop();

      await cluster.change('VideoHold', 'edited-later', { spec: { reason: 'edited' } });
      await cluster.remove('VideoHold', 'deleted-later');
      const fresh = await hold('applied-later');
      expect(await record.statusOf(gone)).toBe('held');

      const second = await start(600_000);
      await held('applied-later');
      await waitFor(async () => (await cluster.find('VideoHold', 'deleted-later')) === null, forEvents);
      expect([await record.statusOf(gone), await record.statusOf(fresh)]).toEqual(['ready', 'held']);
      await waitFor(async () => {
        const { rows } = await record.store.query<{ reason: string }>(
          'select reason from video_holds where video_id = $1 and lifted_at is null',
          [edited],
        );
        return rows[0]?.reason === 'edited';
      }, forEvents);
      await second.stop();
    },
    testMs,
  );

  it(
    'lifts what was deleted with Release before it had a finalizer',
    async () => {
      // Whoever may not write to objects cannot be in time with the finalizer.
      const operator = await start(600_000, await cluster.accountKubeconfig());
      const videoId = await hold('released-at-once');
      await held('released-at-once');
      await cluster.kubectl(['patch', 'role', 'operator', '--type=json', '-p', withoutFinalizers]);
      const asked = ['auth', 'can-i', 'patch', 'videoholds', '--as=system:serviceaccount:default:operator'];
      // It exits with 1 for a no.
      await waitFor(() => cluster.kubectl(asked).then(() => null, String), forEvents);
      await cluster.change('VideoHold', 'released-at-once', { spec: { onDelete: 'Release' } });
      await cluster.remove('VideoHold', 'released-at-once');
      await waitFor(async () => (await record.statusOf(videoId)) === 'ready', forEvents);
      await operator.stop();
    },
    testMs,
  );

  it(
    'goes on after the API server was killed, a watch was reset, and a version too old was asked for',
    async () => {
      const wire = await layWire(cluster.plane.kubeconfig, cluster.plane.server);
      const operator = await start(600_000, wire.kubeconfig);
      await hold('before-the-kill');
      await held('before-the-kill');

      await cluster.plane.kill();
      await cluster.plane.start();
      await hold('after-the-kill');
      await held('after-the-kill');

      wire.cut();
      await hold('after-the-cut');
      await held('after-the-cut');
      await operator.stop();
      await wire.close();

      const api = createClientNodeApi({ namespace: 'default', kubeconfig: cluster.plane.kubeconfig });
      const watch = api.watch(
        'VideoHold',
        { resourceVersion: '1', onChange: () => undefined },
        new AbortController().signal,
      );
      await expect(watch).rejects.toMatchObject({ code: 'gone' });
      await api.close();
    },
    testMs,
  );

  it(
    'notices by listing anew what a connection kept back that went dead without a word (h-k8s-01)',
    async () => {
      const wire = await layWire(cluster.plane.kubeconfig, cluster.plane.server);
      const operator = await start(2_000, wire.kubeconfig);
      await hold('on-a-live-wire');
      await held('on-a-live-wire');
      wire.silence();
      const silentSince = performance.now();
      await hold('on-a-dead-wire');
      await held('on-a-dead-wire');
      // A resync of 2 s, and 10 s for the list that goes into the void; later it would be the watch that gave up.
      expect(performance.now() - silentSince).toBeLessThan(beforeIdleMs);
      await operator.stop();
      await wire.close();
    },
    testMs,
  );

  it(
    'tries again what the API server refuses, while others write to the same objects all the time',
    async () => {
      const storm = ['storm-1', 'storm-2', 'storm-3'];
      // Nobody else writes to the last, and its hold does not become effective: only the next try brings it further.
      const names = [...storm, 'calm'];
      const unread = { bootId: 'reads-nothing', confirmedUpTo: new Date(0) };
      await confirmPlaybackState(record.store, { ...unread, ended: false });
      const refusals: string[] = [];
      const [stale, overtaken] = [new Set(names), new Set(storm)];
      const operator = await start(600_000, cluster.plane.kubeconfig, (api) => {
        const noting = async <T>(call: Promise<T>): Promise<T> => {
          await call.catch((error: unknown) => refusals.push((error as KubernetesError).code));
          return call;
        };
        return {
          ...api,
          // The first status is for an object that had the name before.
          writeStatus: (kind, { metadata, ...rest }, status) => {
            const { name, uid } = metadata;
            const another = stale.delete(name) ? { uid: `not-${uid}` } : {};
            return noting(api.writeStatus(kind, { ...rest, metadata: { ...metadata, ...another } }, status));
          },
          // Somebody else is first with a finalizer.
          writeFinalizers: async (kind, object, finalizers) => {
            const { name } = object.metadata;
            const others = { metadata: { finalizers: ['example.com/other'] } };
            if (overtaken.delete(name)) await cluster.change(kind, name, others);
            return noting(api.writeFinalizers(kind, object, finalizers));
          },
        };
      });
      let over = false;
      const write = async (name: string): Promise<void> => {
        for (let turn = 0; !over; turn++) {
          await cluster.change('VideoHold', name, { metadata: { labels: { turn: String(turn) } } });
        }
      };
      const writers: Promise<void>[] = [];
      try {
        for (const name of names) await hold(name);
        writers.push(...storm.flatMap((name) => [write(name), write(name)]));
        await Promise.all(names.map((name) => held(name)));
        for (const name of names) await cluster.change('VideoHold', name, { spec: { onDelete: 'Release' } });
        const ends = names.map((name) =>
          waitFor(async () => {
            const object = await cluster.find('VideoHold', name);
            return object?.status?.observedGeneration === 2 ? object.metadata.finalizers : null;
          }, forEvents),
        );
        const both = ['example.com/other', 'millrace.dev/release'];
        expect(await Promise.all(ends)).toEqual([both, both, both, ['millrace.dev/release']]);
        expect(refusals.filter((code) => code === 'refused').length).toBeGreaterThanOrEqual(
          names.length + storm.length,
        );
        const shown = await operator.metrics.render();
        const [, retries] =
          /^millrace_kubernetes_retries_total\{kind="video-holds",.*\} (\d+)$/m.exec(shown) ?? [];
        expect(Number(retries)).toBeGreaterThanOrEqual(refusals.length);
      } finally {
        over = true;
        await Promise.allSettled(writers);
        await operator.stop();
        await confirmPlaybackState(record.store, { ...unread, ended: true });
      }
    },
    testMs,
  );

  it(
    'misses none of 500 while its leader is killed in the storm',
    async () => {
      const leader = await startProcess('leading');
      const heir = await startProcess('stands for election');
      const names = Array.from({ length: 500 }, (_, index) => `one-of-500-${index}`);
      const heldNow = async (): Promise<number> => {
        const { rows } = await record.store.query<{ count: number }>(
          `select count(*) from video_holds where reference like 'default/one-of-500-%' and lifted_at is null`,
        );
        return rows[0]?.count ?? 0;
      };
      const waiting = [...names];
      const applying = Array.from({ length: 8 }, async () => {
        for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) await hold(name);
      });
      await waitFor(async () => (await heldNow()) >= 50, forEvents);
      await leader.end('SIGKILL');
      const atTheKill = await heldNow();
      expect(atTheKill).toBeLessThan(500);
      await Promise.all(applying);

      const path = 'jsonpath={range .items[*]}{.metadata.name} {.status.conditions[0].status}{"\\n"}{end}';
      const unheld = await waitFor(async () => {
        const lines = (await cluster.kubectl(['get', 'videoholds', '-o', path])).split('\n');
        const told = new Set(
          lines.filter((line) => line.endsWith(' True')).map((line) => line.split(' ')[0]),
        );
        return names.every((name) => told.has(name)) ? 'none' : null;
      }, forEvents);
      expect([unheld, await heldNow()]).toEqual(['none', 500]);
      await heir.end('SIGTERM');
    },
    testMs,
  );
});
