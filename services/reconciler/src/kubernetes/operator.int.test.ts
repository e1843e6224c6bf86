import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { loadAllYaml } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { confirmPlaybackState } from '@millrace/store';
import { captureLogger, waitFor } from '@millrace/testing';
import { missingForKubernetes } from '../../../../dev/kubernetes/control-plane.ts';
import { describeWith } from '../../../../dev/real-part.ts';
import { conditionsOf, startTestCluster, type TestCluster } from './testing/cluster.ts';
import { createTestRecord, type TestRecord } from './testing/record.ts';
import { startOperator } from './testing/start-operator.ts';

const chart = fileURLToPath(new URL('../../../../charts/millrace', import.meta.url));
const buildMs = 30 * 60_000;
const forEvents = { timeoutMs: 60_000 };

describeWith(missingForKubernetes(), 'the operator', () => {
  let cluster: TestCluster;
  let record: TestRecord;
  let operator: Awaited<ReturnType<typeof startOperator>>;
  const log = captureLogger();

  beforeAll(async () => {
    [cluster, record] = await Promise.all([startTestCluster(), createTestRecord(log.logger)]);
    operator = await startOperator({
      ...{ connectionString: record.connectionString, logger: log.logger },
      // What it may not do fails every test.
      kubeconfig: await cluster.accountKubeconfig(),
      // So long that whatever is noticed was told by a watch or looked for at the start.
      resyncMs: 600_000,
    });
  }, buildMs);
  afterAll(async () => {
    await operator.stop();
    await Promise.all([cluster.stop(), record.close()]);
  });

  const held = (name: string): Promise<string> =>
    waitFor(async () => {
      const conditions = conditionsOf(await cluster.find('VideoHold', name));
      return conditions.startsWith('Held=True') ? conditions : null;
    }, forEvents);
  const untilStatus = (videoId: string, status: string): Promise<boolean> =>
    waitFor(async () => (await record.statusOf(videoId)) === status, forEvents);
  const holdsOf = async (videoId: string): Promise<unknown[]> => {
    const { rows } = await record.store.query(
      `select reference, reason, legal, lifted_at is not null as lifted from video_holds where video_id = $1
       order by placed_at`,
      [videoId],
    );
    return rows;
  };
  /** How many objects of a kind are shown as not applied, for that reason. */
  const notApplied = async (kind: string, reason: string): Promise<string | undefined> => {
    const labels = `kind="${kind}",reason="${reason}",`;
    const lines = (await operator.metrics.render()).split('\n');
    const start = `millrace_kubernetes_objects_not_applied{${labels}`;
    return lines.find((line) => line.startsWith(start))?.split(' ')[1];
  };
  const manifest = (name: string, spec: object, kind = 'VideoHold'): object => ({
    ...{ apiVersion: 'millrace.dev/v1alpha1', kind, metadata: { name, namespace: 'default' }, spec },
  });

  describe('with a VideoHold', () => {
    it('holds the video when it is applied, and lifts its own hold alone when it is deleted with Release', async () => {
      const videoId = await record.newVideo();
      await cluster.kubectl(
        ['apply', '-f', '-'],
        manifest('a', { videoId, reason: 'why', onDelete: 'Release' }),
      );
      await cluster.kubectl(['apply', '-f', '-'], manifest('b', { videoId, onDelete: 'Release' }));
      await untilStatus(videoId, 'held');
      await Promise.all([held('a'), held('b')]);

      await cluster.kubectl(['delete', 'videohold', 'a', '--timeout=60s']);
      expect(await record.statusOf(videoId)).toBe('held');
      await cluster.kubectl(['delete', 'videohold', 'b', '--timeout=60s']);
      expect(await record.statusOf(videoId)).toBe('ready');
      expect(await holdsOf(videoId)).toEqual([
        { reference: 'default/a', reason: 'why', legal: false, lifted: true },
        { reference: 'default/b', reason: null, legal: false, lifted: true },
      ]);
      const { rows } = await record.store.query(
        `select actor, action from audit where subject = $1 and actor like 'kubernetes:%'`,
        [videoId],
      );
      expect(rows).toHaveLength(4);
      expect(rows).toContainEqual({ actor: 'kubernetes:default/a', action: 'video.hold' });
      expect(rows).toContainEqual({ actor: 'kubernetes:default/b', action: 'video.lift' });
    });

    it('leaves the hold when it is deleted with Retain, and takes it over when it is applied again', async () => {
      const videoId = await record.newVideo();
      await cluster.create('VideoHold', 'kept', { videoId });
      await held('kept');
      await cluster.kubectl(['delete', 'videohold', 'kept', '--timeout=60s']);
      expect(await record.statusOf(videoId)).toBe('held');

      await cluster.create('VideoHold', 'kept', { videoId, onDelete: 'Release' });
      await held('kept');
      await cluster.kubectl(['delete', 'videohold', 'kept', '--timeout=60s']);
      expect(await record.statusOf(videoId)).toBe('ready');
      expect(await holdsOf(videoId)).toHaveLength(1);
    });

    it('follows an edit, and says so of the new generation', async () => {
      const videoId = await record.newVideo();
      await cluster.create('VideoHold', 'edited', { videoId });
      await held('edited');
      await cluster.change('VideoHold', 'edited', { spec: { reason: 'another', legal: true } });
      const object = await waitFor(async () => {
        const found = await cluster.find('VideoHold', 'edited');
        return found?.status?.observedGeneration === 2 ? found : null;
      }, forEvents);
      expect(object.metadata.finalizers).toEqual([]);
      expect(await holdsOf(videoId)).toEqual([
        { reference: 'default/edited', reason: 'another', legal: true, lifted: false },
      ]);
      expect(object.status?.heldSince).toMatch(/^\d{4}-.*Z$/);
    });

    it('says since when it holds on every process of the CDN', async () => {
      const told = { bootId: 'of-this-test', ended: false };
      await confirmPlaybackState(record.store, { ...told, confirmedUpTo: new Date(0) });
      await cluster.create('VideoHold', 'spreading', { videoId: await record.newVideo() });
      expect(await held('spreading')).toBe('Held=True/Held, Effective=False/Spreading');

      const confirmedUpTo = new Date(Date.now() + 3_600_000);
      await confirmPlaybackState(record.store, { ...told, confirmedUpTo });
      await cluster.kubectl(['wait', '--for=condition=Effective', 'videohold/spreading', '--timeout=60s']);
      const { heldSince = '', effectiveSince = '' } =
        (await cluster.find('VideoHold', 'spreading'))?.status ?? {};
      expect(Date.parse(effectiveSince)).toBeGreaterThanOrEqual(Date.parse(heldSince));
      await confirmPlaybackState(record.store, { ...told, confirmedUpTo, ended: true });
    });

    it('says why it cannot hold, and holds as soon as it can be asked again', async () => {
      const videoId = `vid_${'A'.repeat(76)}`;
      await cluster.create('VideoHold', 'early', { videoId });
      const reason = await waitFor(
        async () => conditionsOf(await cluster.find('VideoHold', 'early')),
        forEvents,
      );
      expect(reason).toBe('Held=False/VideoNotFound');
      await waitFor(async () => (await notApplied('VideoHold', 'VideoNotFound')) === '1', forEvents);
      const events = await waitFor(() =>
        cluster.kubectl(['get', 'events.events.k8s.io', '-o', 'jsonpath={.items[*].reason}']),
      );
      expect(events).toContain('VideoNotFound');
      await record.newVideo(videoId);
      await cluster.change('VideoHold', 'early', { metadata: { labels: { asked: 'again' } } });
      expect(await held('early')).toMatch(/^Held=True\/Held/);
      await waitFor(async () => (await notApplied('VideoHold', 'VideoNotFound')) === '0', forEvents);
    });

    it('refuses another video, a reason that nobody can read, and what is not an id', async () => {
      const videoId = await record.newVideo();
      await cluster.create('VideoHold', 'fixed', { videoId });
      const change = (spec: object): Promise<void> => cluster.change('VideoHold', 'fixed', { spec });
      await expect(change({ videoId: 'vid_other' })).rejects.toThrow(/make another VideoHold/);
      await expect(change({ reason: ' ' })).rejects.toThrow(/visible character/);
      await expect(change({ reason: 'a\u0007b' })).rejects.toThrow(/control characters/);
      await expect(change({ onDelete: 'Never' })).rejects.toThrow(/Unsupported value/);
      await expect(cluster.create('VideoHold', 'odd', { videoId: 'prj_1' })).rejects.toThrow(/should match/);
    });
  });

  describe('with what the README of the chart shows', () => {
    it('is, within the time that it waits for it, as it says', async () => {
      const readme = await readFile(`${chart}/README.md`, 'utf8');
      const [, yaml = ''] = /^```yaml\n(apiVersion: millrace[^]*?)^```/m.exec(readme) ?? [];
      const items = loadAllYaml(yaml);
      const waits = [...readme.matchAll(/^kubectl --namespace media (wait --for=condition=.*)$/gm)];
      expect([items.length, waits.length]).toEqual([2, 2]);
      const [, videoId] = /videoId: (\w+)/.exec(yaml) ?? [];
      await record.newVideo(videoId);
      const told = { bootId: 'of-the-readme', confirmedUpTo: new Date(Date.now() + 3_600_000) };
      await confirmPlaybackState(record.store, { ...told, ended: false });
      await cluster.kubectl(['apply', '-f', '-'], { apiVersion: 'v1', kind: 'List', items });
      await Promise.all(waits.map(([, words = '']) => cluster.kubectl(words.split(' '))));
      await confirmPlaybackState(record.store, { ...told, ended: true });
      await cluster.kubectl(['delete', 'plan,videohold', '--all', '--timeout=60s']);
    });
  });

  describe('with names that are long, or begin alike', () => {
    it('holds them all, and tells of each (h-k8s-04)', async () => {
      const alike = 'a'.repeat(63);
      const names = [`${alike}-one`, `${alike}-two`, `x.${'y'.repeat(240)}.z-9`];
      const ids = names.map((_, index) => `vid_${'AbC9'.repeat(18)}x${index}z`.slice(0, 80));
      for (const [index, name] of names.entries()) {
        await record.newVideo(ids[index]);
        await cluster.create('VideoHold', name, { videoId: ids[index] });
      }
      await Promise.all(names.map(held));
      const told = async (): Promise<string[]> => {
        const path = 'jsonpath={range .items[?(@.reason=="Held")]}{.regarding.name}{"\\n"}{end}';
        return (await cluster.kubectl(['get', 'events.events.k8s.io', '-o', path])).split('\n');
      };
      const untold = async (): Promise<string[]> => {
        const known = await told();
        return names.filter((name) => !known.includes(name));
      };
      await waitFor(async () => (await untold()).length === 0, forEvents);
    });
  });

  describe('with a Plan', () => {
    const limits = {
      ...{ storedSeconds: 1_000, uploadSecondsPerPeriod: 'unlimited', watchedMinutesPerPeriod: 60 },
      ...{ verifiedDomains: 'unlimited', projects: 7, maxQuality: '720p', whiteLabel: false },
      ...{ maxFileBytes: 5_000_000_000, maxSourceSeconds: 60, encodeJobs: 3 },
    };
    const planOf = async (id: string): Promise<unknown> => {
      const { rows } = await record.store.query(
        `select stored_seconds as stored, upload_seconds_per_period as upload, projects, max_quality as quality,
           white_label as "whiteLabel", encode_jobs as jobs, source, source_generation as generation
         from plans where id = $1`,
        [id],
      );
      return rows[0];
    };
    const applied = (name: string, generation: number): Promise<string> =>
      waitFor(async () => {
        const object = await cluster.find('Plan', name);
        return object?.status?.observedGeneration === generation ? conditionsOf(object) : null;
      }, forEvents);

    it('gives the plan of its name its limits, generation after generation, and keeps them when it goes', async () => {
      await cluster.kubectl(['apply', '-f', '-'], manifest('starter', limits, 'Plan'));
      expect(await applied('starter', 1)).toBe('Applied=True/Applied');
      const expected = {
        stored: 1_000,
        upload: null,
        projects: 7,
        quality: '720p',
        whiteLabel: false,
        jobs: 3,
      };
      expect(await planOf('starter')).toEqual({ ...expected, source: 'kubernetes', generation: 1 });

      await cluster.change('Plan', 'starter', { spec: { projects: 'unlimited' } });
      expect(await applied('starter', 2)).toBe('Applied=True/Applied');
      expect(await planOf('starter')).toMatchObject({ projects: null, generation: 2 });

      await cluster.kubectl(['delete', 'plan', 'starter', '--timeout=60s']);
      expect(await planOf('starter')).toMatchObject({ projects: null, generation: 2 });
      await cluster.create('Plan', 'starter', { ...limits, projects: 1 });
      expect(await applied('starter', 1)).toBe('Applied=True/Applied');
      expect(await planOf('starter')).toMatchObject({ projects: 1, generation: 1 });
    });

    it('tells the CDN what it means for each account', async () => {
      const { accountId } = record.account;
      const stateVersion = async (): Promise<number> => {
        const { rows } = await record.store.query<{ version: number }>(
          'select version from accounts where id = $1',
          [accountId],
        );
        return rows[0]?.version ?? 0;
      };
      const before = await stateVersion();
      await cluster.create('Plan', 'agency', { ...limits, maxQuality: '1080p' });
      await applied('agency', 1);
      expect(await waitFor(async () => (await stateVersion()) > before, forEvents)).toBe(true);
    });

    it('is refused when a limit is missing or odd, or the plan may not have it', async () => {
      const create = (name: string, over: object): Promise<void> =>
        cluster.create('Plan', name, { ...limits, ...over });
      await expect(create('free', { projects: undefined })).rejects.toThrow(/spec.projects: Required/);
      await expect(create('free', { projects: 'none' })).rejects.toThrow(/or unlimited/);
      await expect(create('free', { projects: -1 })).rejects.toThrow(/or unlimited/);
      await expect(create('free', { whiteLabel: true })).rejects.toThrow(/only pro and agency/);
      await expect(create('free', { maxQuality: '1440p' })).rejects.toThrow(/only pro and agency/);
      await expect(create('pro', { displayName: 'a\u0000b' })).rejects.toThrow(/control characters/);
      await expect(create('pro', { displayName: ' \n\u001b[31m' })).rejects.toThrow(/control characters/);
      await expect(create('pro', { displayName: '  ' })).rejects.toThrow(/visible character/);
      await expect(create('gold', {})).rejects.toThrow(/named after the plan/);
    });
  });

  it('may do what it did here, and nothing more', async () => {
    const may = async (...what: string[]): Promise<string> => {
      const account = 'system:serviceaccount:default:operator';
      // It exits with 1 for a no.
      return cluster.kubectl(['auth', 'can-i', ...what, `--as=${account}`]).then(
        (answer) => answer.trim(),
        () => 'no',
      );
    };
    const yes = [
      ['list', 'videoholds.millrace.dev'],
      ['watch', 'plans.millrace.dev'],
      ['patch', 'videoholds.millrace.dev/status'],
      ['create', 'events.events.k8s.io'],
    ];
    const no = [
      ['get', 'videoholds.millrace.dev'],
      ['get', 'plans.millrace.dev'],
      ['delete', 'videoholds.millrace.dev'],
      ['create', 'videoholds.millrace.dev'],
      ['patch', 'plans.millrace.dev'],
      ['list', 'videoholds.millrace.dev', '--all-namespaces'],
      ['get', 'secrets'],
      ['list', 'pods'],
      ['patch', 'customresourcedefinitions.apiextensions.k8s.io'],
    ];
    expect(await Promise.all(yes.map((what) => may(...what)))).toEqual(yes.map(() => 'yes'));
    expect(await Promise.all(no.map((what) => may(...what)))).toEqual(no.map(() => 'no'));
  });
});
