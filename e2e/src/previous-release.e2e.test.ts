import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type PlaybackTokenResource as PlaybackToken } from '@millrace/contract';
import { silentLogger } from '@millrace/platform';
import { createDatabase } from '@millrace/store';
import { waitFor } from '@millrace/testing';
import { type Customer, signUp } from './demo/customer.ts';
import { untilReady } from './demo/demo.ts';
import { type Receiver, startReceiver } from './demo/receiver.ts';
import { createReport } from './demo/report.ts';
import { commandLine, type StartedStack, startStack } from './demo/stack.ts';
import { uploadFile } from './demo/upload.ts';
import { createPlayer } from './demo/walk.ts';
import { checkReadyEvent, subscribe, type Webhooks } from './demo/webhooks.ts';
import { unpackPreviousRelease } from './testing/previous-release.ts';

const film = fileURLToPath(new URL('../../packages/testing/media/short_0_2s.mp4', import.meta.url));
const migrations = fileURLToPath(new URL('../../packages/store/migrations', import.meta.url));
const patienceMs = 120_000;
const never = new AbortController().signal;

/**
 * What an upgrade does: migrations first, while the release before runs. It knows nothing of what they bring and has to
 * go on until its last process is replaced.
 */
describe('the release before ours, on our schema', () => {
  let folder: string;
  let stack: StartedStack;
  let customer: Customer;
  let receiver: Receiver;
  let webhooks: Webhooks;
  let before: string;
  let since: string;
  let applied: string[];

  const upload = async (): Promise<string> => {
    const { video } = await uploadFile(customer, film);
    await untilReady(customer, video.id);
    return video.id;
  };
  const token = (videoId: string): Promise<PlaybackToken> => {
    const { client, projectId, domain } = customer;
    return client.createPlaybackToken({ projectId, videoId, body: { domain } });
  };
  const play = async ({ playlistUrl = '' }: PlaybackToken): Promise<string> =>
    (await createPlayer(`https://${customer.domain}`).get(playlistUrl)).toString('utf8');

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-previous-'));
    const [release, dataDir] = [join(folder, 'release'), join(folder, 'data')];
    await mkdir(release);
    await unpackPreviousRelease(release);
    const env = { ENCODER_PRESET: 'ultrafast' };
    stack = await startStack({ release, dataDir, env, signal: never });
    customer = await signUp(stack, 'pro');
    before = await upload();

    const migrated = (await commandLine(dataDir, never)('migrate')) as { applied: string[] };
    applied = migrated.applied;
    receiver = await startReceiver();
    webhooks = await subscribe(createReport(process.stderr), customer, { receiver, signal: never });
    since = await upload();
  }, 3 * patienceMs);
  afterAll(async () => {
    await (stack as StartedStack | undefined)?.stop();
    await (receiver as Receiver | undefined)?.stop();
    await rm(folder, { recursive: true, force: true });
  }, patienceMs);

  it('has run while every later migration was made', () => {
    const all = readdirSync(migrations).filter((name) => name.endsWith('.sql'));
    expect(applied).not.toEqual([]);
    expect(applied).toEqual(all.sort().slice(all.length - applied.length));
    expect(stack.lastWords()).toBeNull();
  });

  it('plays what it had and what it has taken since', async () => {
    for (const videoId of [before, since]) expect(await play(await token(videoId))).toMatch(/^#EXTM3U/);
  });

  it('tells its webhooks', async () => {
    await checkReadyEvent(webhooks, { name: 'webhook: video.ready', videoId: since });
  });

  it(
    'holds, lifts and deletes',
    async () => {
      const { client, projectId } = customer;
      const issued = await token(since);
      const operator = commandLine(join(folder, 'data'), never);
      const refused = async (): Promise<boolean> => !(await play(issued).then(Boolean, () => false));
      await operator('video', 'hold', since, '--reason', 'try');
      await waitFor(refused, { timeoutMs: patienceMs, what: 'the hold to reach the CDN' });
      await operator('video', 'lift', since);
      await waitFor(async () => !(await refused()), { timeoutMs: patienceMs, what: 'the CDN to play again' });
      await client.deleteVideo({ projectId, videoId: since });
      await waitFor(refused, { timeoutMs: patienceMs, what: 'the deletion to reach the CDN' });
      const { data } = await client.listVideos({ projectId, query: {} });
      expect(data.map(({ id }) => id)).toEqual([before]);
    },
    3 * patienceMs,
  );

  it('shows ours the way back: what the release after ours has migrated is no error', async () => {
    const dataDir = join(folder, 'data');
    const run = JSON.parse(await readFile(join(dataDir, 'run.json'), 'utf8')) as { connectionString: string };
    const db = createDatabase({ connectionString: run.connectionString, logger: silentLogger });
    try {
      const later = '999999_later.sql';
      // As the release after ours will do; the one before ours cannot learn it any more.
      await db.query(`insert into migrations (number, name, hash) values (999999, $1, 'of that release')`, [
        later,
      ]);
      expect(await commandLine(dataDir, never)('migrate')).toEqual({
        ...{ migrated: true, applied: [], newer: [later] },
      });
    } finally {
      await db.close();
    }
  });
});
