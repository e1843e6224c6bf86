import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { createDatabase } from '@millrace/store';
import { waitFor } from '@millrace/testing';
import { missingForKafka } from '../../dev/kafka/jars.ts';
import { missingForKubernetes } from '../../dev/kubernetes/control-plane.ts';
import { describeWith } from '../../dev/real-part.ts';
import { missingForS3 } from '../../dev/s3/versitygw.ts';
import {
  startTestCluster,
  type TestCluster,
} from '../../services/reconciler/src/kubernetes/testing/cluster.ts';
import { type Customer, signUp } from './demo/customer.ts';
import { untilReady } from './demo/demo.ts';
import { uploadFile } from './demo/upload.ts';
import { createPlayer } from './demo/walk.ts';
import { startTestStack, type TestStack } from './testing/test-stack.ts';

const film = fileURLToPath(new URL('../../packages/testing/media/short_0_2s.mp4', import.meta.url));
const patienceMs = 120_000;
const missing = missingForKubernetes() ?? missingForKafka() ?? missingForS3();

/** From `kubectl` over a real API server, the record and Kafka to the viewers of two CDN processes. */
describeWith(missing, 'a VideoHold', () => {
  let cluster: TestCluster;
  let stack: TestStack;
  let customer: Customer;

  beforeAll(async () => {
    cluster = await startTestCluster();
    const operator = { KUBECONFIG: await cluster.accountKubeconfig(), KUBERNETES_NAMESPACE: 'default' };
    stack = await startTestStack({ env: operator, cdns: 2 });
    customer = await signUp(stack.attached, 'pro');
  }, 30 * 60_000);
  afterAll(async () => {
    await (stack as TestStack | undefined)?.stop();
    await (cluster as TestCluster | undefined)?.stop();
  }, patienceMs);

  it(
    'stops playback everywhere before it says so, and lets it go on when it is deleted',
    async () => {
      const { client, projectId, domain } = customer;
      const { video } = await uploadFile(customer, film);
      await untilReady(customer, video.id);
      const token = await client.createPlaybackToken({ projectId, videoId: video.id, body: { domain } });
      const player = createPlayer(`https://${domain}`);
      const play = async (cdn: string): Promise<string> => {
        const { pathname, search } = new URL(token.playlistUrl ?? '');
        return (await player.get(cdn + pathname + search)).toString('utf8', 0, 7);
      };
      const { cdns } = stack.ready();
      expect(cdns).toHaveLength(2);
      for (const cdn of cdns) expect(await play(cdn)).toBe('#EXTM3U');

      await cluster.kubectl(['apply', '-f', '-'], {
        ...{ apiVersion: 'millrace.dev/v1alpha1', kind: 'VideoHold', metadata: { name: 'stop' } },
        spec: { videoId: video.id, reason: 'try', onDelete: 'Release' },
      });
      await cluster.kubectl(['wait', '--for=condition=Effective', 'videohold/stop', '--timeout=90s']);
      // At once: that is what it says.
      for (const cdn of cdns) await expect(play(cdn)).rejects.toThrow('video_unavailable');
      expect(await proofsOf(video.id)).toEqual([{ proof: 'confirmed', processes: 2 }]);

      await cluster.kubectl(['delete', 'videohold', 'stop', '--timeout=60s']);
      const plays = async (): Promise<boolean> =>
        (await Promise.all(cdns.map(play))).every((text) => text === '#EXTM3U');
      await waitFor(plays, { timeoutMs: patienceMs, what: 'both to play again' });
    },
    3 * patienceMs,
  );

  /** By what holds of the video were known to hold everywhere, and how many processes had confirmed them. */
  async function proofsOf(videoId: string): Promise<object[]> {
    const store = createDatabase({
      connectionString: stack.servers.postgres.connectionString,
      logger: silentLogger,
    });
    try {
      const { rows } = await store.query<object>(
        `select a.details ->> 'proof' as proof,
           (select count(*)::int from cdn_processes p where p.confirmed_up_to > h.seen_at) as processes
         from audit a join video_holds h on h.video_id = a.subject
         where a.action = 'video.hold.effective' and a.subject = $1`,
        [videoId],
      );
      return rows;
    } finally {
      await store.close();
    }
  }
});
