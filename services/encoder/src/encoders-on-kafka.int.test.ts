import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createMetrics, type Service, silentLogger, systemClock } from '@millrace/platform';
import { pauseEncoding, resumeEncoding } from '@millrace/store';
import { captureLogger, seedAccount, type SeededAccount, waitFor } from '@millrace/testing';
import { missingForKafka } from '../../../dev/kafka/jars.ts';
import { describeWith } from '../../../dev/real-part.ts';
import { missingForS3 } from '../../../dev/s3/versitygw.ts';
import { createEncoder, encoderConfig } from './index.ts';
import { createFfmpegProcess } from './process/fluent-ffmpeg-process.ts';
import { deadlyFfmpeg, heldFfmpeg } from './testing/worker-process.ts';
import { createKafkaStage, type KafkaStage, patience, type StagedEncoder } from './testing/kafka-stage.ts';

jest.setTimeout(240_000);
const clipSeconds = 5;
const short = new URL('../../../packages/testing/media/short_0_2s.mp4', import.meta.url);

describeWith(missingForKafka() ?? missingForS3(), 'encoders on Kafka', () => {
  let stage: KafkaStage;
  let account: SeededAccount;

  beforeAll(async () => {
    stage = await createKafkaStage();
  }, 20 * 60_000);
  afterAll(() => stage.close());
  beforeEach(async () => {
    account = await seedAccount(stage.db);
  });
  afterEach(() => stage.clear());

  const startEncoders = (env: NodeJS.ProcessEnv): Promise<StagedEncoder[]> =>
    Promise.all(['one', 'two'].map((name) => stage.startEncoder(name, env)));

  interface Task {
    status: string;
    fence: number;
    losses: number;
    failures: number;
    worker: string | null;
    seconds: number | null;
  }
  async function videoTask(videoId: string): Promise<Task | null> {
    const { rows } = await stage.db.query<Task>(
      `select status, fence, losses, failures, worker,
         extract(epoch from finished_at - started_at)::float8 as seconds
       from encode_tasks where video_id = $1 and kind = 'video'`,
      [videoId],
    );
    return rows[0] ?? null;
  }

  describe('with a video of some seconds', () => {
    let clip: Buffer;
    beforeAll(async () => {
      const file = path.join(stage.folder, 'clip.mp4');
      await promisify(execFile)('ffmpeg', [
        ...['-v', 'error', '-f', 'lavfi', '-i', `testsrc2=size=320x180:rate=25:duration=${clipSeconds}`],
        ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', file],
      ]);
      clip = await readFile(file);
    });

    /** Uploads to two encoders, and ends the one that makes the video as soon as it has begun. */
    async function terminateMidway(drainMs: string): Promise<{ videoId: string; stopped: string }> {
      const started = await startEncoders({ ENCODER_DRAIN_MS: drainMs });
      const videoId = await stage.upload(account, clip);
      const busy = await waitFor(
        async () => {
          for (const each of started) if (await each.ffmpeg.hasBegun()) return each;
          return null;
        },
        { ...patience, what: 'ffmpeg to begin' },
      );
      expect(await busy.worker.terminate()).toBe(0);
      return { videoId, stopped: busy.name };
    }

    it('let the encode end within the grace time when one is terminated midway', async () => {
      const { videoId, stopped } = await terminateMidway('25000');
      expect(await videoTask(videoId)).toMatchObject({ status: 'done', fence: 1, worker: stopped });
      await stage.delivered(videoId);
      expect(await stage.readyEvents(videoId)).toEqual({ recorded: 1, published: 1 });
    });

    it('hand the encode to the other at once when there is no time, and count nothing as lost', async () => {
      const { videoId, stopped } = await terminateMidway('0');
      await stage.delivered(videoId);
      // A lease that ran out would have counted as a loss.
      expect(await videoTask(videoId)).toMatchObject({
        ...{ status: 'done', fence: 2, losses: 0, failures: 0 },
        worker: stopped === 'one' ? 'two' : 'one',
      });
      expect(await stage.readyEvents(videoId)).toEqual({ recorded: 1, published: 1 });
    });

    it('end four videos when four of them become one in their midst, each begun anew once at most (h-k8s-02)', async () => {
      const names = ['scaled-a', 'scaled-b', 'scaled-c', 'scaled-d'];
      const films = await Promise.all(names.map((name) => heldFfmpeg(path.join(stage.folder, name))));
      const four = await Promise.all(
        films.map(({ path: PATH }, index) =>
          // The worst that a scale-down can be: no time to end anything.
          stage.startEncoder(names[index] ?? '', { PATH, ENCODER_DRAIN_MS: '0' }),
        ),
      );
      const videoIds = await Promise.all(four.map(() => stage.upload(account, clip)));
      for (const { hasBegun } of films) await waitFor(hasBegun, { ...patience, what: 'ffmpeg to begin' });
      const codes = await Promise.all(four.slice(1).map(({ worker }) => worker.terminate()));
      expect(codes).toEqual([0, 0, 0]);
      await films[0]?.letGo();
      for (const videoId of videoIds) {
        await stage.delivered(videoId);
        expect(await stage.readyEvents(videoId)).toEqual({ recorded: 1, published: 1 });
      }
      const tasks = await Promise.all(videoIds.map(videoTask));
      for (const task of tasks)
        expect(task).toMatchObject({ status: 'done', worker: names[0], losses: 0, failures: 0 });
      expect(tasks.map((task) => task?.fence).sort()).toEqual([1, 2, 2, 2]);
    });

    it('fail a video that kills each of them, for want of memory, and make those behind it (h-k8s-03)', async () => {
      const env = {
        PATH: await deadlyFfmpeg(path.join(stage.folder, 'deadly')),
        // How soon a killed one is missed.
        ENCODER_LEASE_MS: '3000',
      };
      const deadly = await stage.upload(account, await readFile(short));
      const others = [await stage.upload(account, clip), await stage.upload(account, clip)];
      let kills = 0;
      const pod: { worker?: StagedEncoder['worker'] } = {};
      // Starts it again whenever it was killed, as a kubelet does.
      const kubelet = async (): Promise<void> => {
        for (; ; kills += 1) {
          const { worker } = await stage.startEncoder('pod', env);
          pod.worker = worker;
          if ((await worker.ended) !== 'SIGKILL') return;
        }
      };
      const watching = kubelet();
      const failed = await waitFor(async () => {
        const { rows } = await stage.db.query<{ code: string; message: string }>(
          `select failure_code as code, failure_message as message from videos
           where id = $1 and status = 'failed'`,
          [deadly],
        );
        return rows[0];
      }, patience);
      for (const videoId of others) await stage.delivered(videoId);
      await pod.worker?.terminate();
      await watching;

      expect(failed).toMatchObject({ code: 'encoding_failed' });
      expect(failed.message).toContain('needed more memory, disk or time than there is');
      // Three times in each class; then nothing of it is tried again.
      expect(kills).toBe(6);
      for (const videoId of others)
        expect(await videoTask(videoId)).toMatchObject({ status: 'done', fence: 1, losses: 0 });
    });

    it('work on it for several session timeouts, once, while the group stays calm', async () => {
      const log = captureLogger();
      const sessionMs = 1_500;
      const encoders: Service[] = [];
      for (const name of ['calm-1', 'calm-2']) encoders.push(await startHere(name, log.logger, sessionMs));
      try {
        const assignments = (): number =>
          log.lines.filter(({ message }) => message === 'partitions assigned').length;
        await waitFor(() => assignments() >= 2, patience);
        const videoId = await stage.upload(account, clip);
        await waitFor(async () => (await videoTask(videoId))?.status === 'processing', patience);
        const before = assignments();
        await stage.delivered(videoId);
        const task = await videoTask(videoId);
        expect(task).toMatchObject({ status: 'done', fence: 1, losses: 0 });
        expect(task?.seconds).toBeGreaterThan((3 * sessionMs) / 1_000);
        // A starved machine may miss one session; a group that rebalances in a loop has several a session.
        expect(assignments() - before).toBeLessThan(5);
        expect(await stage.readyEvents(videoId)).toEqual({ recorded: 1, published: 1 });
      } finally {
        await Promise.all(encoders.map((encoder) => encoder.stop()));
      }
    });

    /** An encoder in this process, which makes videos at their own speed. */
    async function startHere(name: string, logger: typeof silentLogger, sessionMs: number): Promise<Service> {
      const { db: store, objects, folder } = stage;
      const bus = stage.openBus({ logger, times: { sessionMs, heartbeatMs: 200 } });
      const real = createFfmpegProcess();
      const isVideo = (args: readonly string[]): boolean => args.some((arg) => arg.endsWith('360p.mp4'));
      const encoder = createEncoder({
        config: encoderConfig.parse({
          ...{ ENCODER_SLOTS: '1', ENCODER_THREADS: '1', ENCODER_PRESET: 'ultrafast', ENCODER_DRAIN_MS: '0' },
          ENCODER_SCRATCH_DIR: path.join(folder, name),
        }),
        ...{ store, bus, objects, clock: systemClock, logger: silentLogger },
        metrics: createMetrics({ service: 'encoder' }),
        process: { run: (args, ...rest) => real.run(isVideo(args) ? ['-re', ...args] : args, ...rest) },
      });
      await encoder.start(new AbortController().signal);
      return { ...encoder, stop: () => encoder.stop().then(() => bus.close()) };
    }
  });

  describe('with an import of 200 videos', () => {
    const env = { ENCODER_SLOTS: '2', ENCODER_DRAIN_MS: '0', ENCODER_IDLE_MS: '600000' };
    const processing = async (): Promise<number> =>
      (await stage.db.query(`select from encode_tasks where status = 'processing'`)).rowCount;
    /** Of the import's tasks. */
    const claims = async (): Promise<number> => {
      const { rows } = await stage.db.query<{ claims: number }>(
        'select sum(fence)::int as claims from encode_tasks where account_id = $1',
        [account.accountId],
      );
      return rows[0]?.claims ?? 0;
    };
    let film: Buffer;
    beforeAll(async () => {
      film = await readFile(short);
    });
    const queueImport = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i += 20)
        await Promise.all(Array.from({ length: 20 }, () => stage.upload(account, film)));
    };

    /** So that whoever claims next has the choice between it and the import. @returns when that began */
    async function uploadBeforeNextClaim(other: SeededAccount): Promise<{ videoId: string; since: Date }> {
      const nobody = await seedAccount(stage.db);
      return stage.db.transaction(async (tx) => {
        // Nobody claims while a pause is being written, whoever's it is.
        const pause = { scope: 'account', accountId: nobody.accountId } as const;
        await pauseEncoding(tx, { pause, reason: 'test', actor: 'test' });
        const videoId = await stage.upload(other, film);
        const waiting = `select from pg_locks where locktype = 'advisory' and not granted
          and database = (select oid from pg_database where datname = current_database())`;
        await waitFor(async () => (await tx.query(waiting)).rowCount > 0, {
          ...patience,
          what: 'an encoder with a free slot',
        });
        const { rows } = await tx.query<{ now: Date }>('select clock_timestamp() as now');
        return { videoId, since: rows[0]?.now ?? new Date(0) };
      });
    }

    it('do the only video of another account before it, but for one task [LIM-113]', async () => {
      await queueImport(200);
      await startEncoders(env);
      await waitFor(async () => (await claims()) > 8, patience);
      const other = await seedAccount(stage.db, { planId: 'free' });
      const { videoId, since } = await uploadBeforeNextClaim(other);
      await stage.delivered(videoId);
      // What a claim sees was committed before: later tasks count as waiting a moment after their insertion.
      const { rowCount } = await stage.db.query(
        `select distinct a.id from encode_tasks a join encode_tasks b on b.video_id = $2
           and a.started_at > case when b.kind = 'plan' then $3 else b.created_at + interval '250 ms' end
           and a.started_at < b.started_at
         where a.account_id = $1`,
        [account.accountId, videoId, since],
      );
      expect(rowCount).toBeLessThanOrEqual(1);
      const left = `select from videos where account_id = $1 and status = 'processing'`;
      expect((await stage.db.query(left, [account.accountId])).rowCount).toBeGreaterThan(100);
    });

    it('end what they do and take nothing more when the team pauses, and go on when it says so', async () => {
      await queueImport(20);
      await startEncoders(env);
      await waitFor(async () => (await claims()) > 4, patience);
      const pause = { scope: 'account', accountId: account.accountId } as const;
      await stage.db.transaction((tx) => pauseEncoding(tx, { pause, reason: 'test', actor: 'test' }));
      const atPause = await claims();
      await waitFor(async () => (await processing()) === 0, patience);
      // Permits that were under way come to nothing: another account's video goes through meanwhile.
      const videoId = await stage.upload(await seedAccount(stage.db), film);
      await stage.delivered(videoId);
      expect(await claims()).toBe(atPause);
      const lost = `select from encode_tasks where account_id = $1 and (failures > 0 or losses > 0)`;
      expect((await stage.db.query(lost, [account.accountId])).rowCount).toBe(0);
      // They look by themselves every ten minutes only.
      await stage.db.transaction((tx) => resumeEncoding(tx, { pause, actor: 'test' }));
      await waitFor(async () => (await claims()) > atPause + 8, patience);
    });
  });
});
