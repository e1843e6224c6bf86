import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type PlaybackTokenResource as PlaybackToken, type Video } from '@millrace/contract';
import { probePort } from '@millrace/platform';
import { waitFor } from '@millrace/testing';
import { type Frame, type Page } from 'playwright-core';
import { type Customer, signUp } from './demo/customer.ts';
import { checkPlayback, untilReady } from './demo/demo.ts';
import { type Receiver, startReceiver } from './demo/receiver.ts';
import { checkExpiry } from './demo/refusals.ts';
import { createReport } from './demo/report.ts';
import { type StartedStack, startStack } from './demo/stack.ts';
import { uploadFile } from './demo/upload.ts';
import { startShopPage } from './demo/page.ts';
import { createPlayer } from './demo/walk.ts';
import { checkReadyEvent, subscribe, unsubscribe } from './demo/webhooks.ts';
import { launchChromium } from './testing/chromium.ts';
import { type Posted, startForger } from './testing/forger.ts';
import { type Meddling, startMeddler } from './testing/meddler.ts';
import { wrongs } from './testing/wrongs.ts';

const demo = fileURLToPath(new URL('./demo/main.ts', import.meta.url));
const never = new AbortController().signal;
/** Two segments. */
const seconds = 7;

describe('the demo', () => {
  let folder: string;
  let clip: string;
  let stack: StartedStack;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-demo-test-'));
    clip = join(folder, 'clip.mp4');
    await promisify(execFile)('ffmpeg', [
      ...['-v', 'error', '-f', 'lavfi', '-i', `testsrc2=s=640x360:r=30:d=${seconds}`],
      ...['-f', 'lavfi', '-i', `aevalsrc=exprs='sin(2*PI*440*t)*abs(sin(3*t))/2':d=${seconds}`],
      ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-c:a', 'aac', clip],
    ]);
    stack = await startStack({ dataDir: join(folder, 'data'), signal: never });
  });
  afterAll(async () => {
    await stack.stop();
    await rm(folder, { recursive: true, force: true });
  });

  interface Running {
    signal(name: NodeJS.Signals): void;
    output(): string;
    ended: Promise<number | null>;
  }

  /** Runs the demo as a person does. */
  function start(args: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
    const child = spawn(process.execPath, [demo, ...args], { env: { ...process.env, ...env } });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    }
    const ended = once(child, 'close').then(([code]) => code as number | null);
    return { signal: (name) => child.kill(name), output: () => output, ended };
  }

  /** A port that nobody listens on. */
  const deadAddress = async (): Promise<string> => `http://127.0.0.1:${await probePort('127.0.0.1')}`;

  describe('names the first thing that failed', () => {
    /** Runs the demo with other addresses than the true ones. */
    async function runWith(
      addresses: Partial<{ api: string; cdn: string }>,
    ): Promise<[number | null, string]> {
      const ready = join(folder, 'ready-elsewhere.json');
      await writeFile(ready, JSON.stringify({ api: stack.api, cdn: stack.cdn, ...addresses }));
      const running = start([clip, '--attach', ready, '--data', join(folder, 'data')]);
      return [await running.ended, running.output()];
    }

    it('when nothing listens at the API', async () => {
      const [code, output] = await runWith({ api: await deadAddress() });
      expect(output).toContain('FAILED at sign up and verify a domain: fetch failed (connect ECONNREFUSED');
      expect(code).toBe(1);
    });

    it('when nothing listens at the CDN', async () => {
      const [code, output] = await runWith({ cdn: await deadAddress() });
      expect(output).toContain('FAILED at walk master, playlists, init and segments: fetch failed');
      expect(output).toMatch(/encode +7 s of video, 360p, .* ✓\n/);
      expect(output).toMatch(/walk master, playlists, init and segments +fetch failed .* ✗\n/);
      expect(code).toBe(1);
    });

    it('when the file is not there, or is no video', async () => {
      const missing = start([join(folder, 'missing.mp4')]);
      expect(await missing.ended).toBe(1);
      expect(missing.output()).toContain('FAILED at file: ENOENT');

      const ready = join(folder, 'ready.json');
      await writeFile(ready, JSON.stringify({ api: stack.api, cdn: stack.cdn }));
      const script = start([demo, '--attach', ready, '--data', join(folder, 'data')]);
      expect(await script.ended).toBe(1);
      expect(script.output()).toContain('FAILED at encode: the video is failed: invalid_file');
    });
  });

  it.each([[['--what']], [['one.mp4', 'two.mp4']], [['--attach', 'ready.json']]])(
    'shows its usage after %j',
    async (args) => {
      const running = start(args);
      expect(await running.ended).toBe(2);
      expect(running.output()).toMatch(/^usage: npm run demo/);
    },
  );

  describe('leaves nothing behind', () => {
    /** Starts the demo on its own service, and waits until that is up. */
    async function startAlone(name: string): Promise<{ running: Running; temporary: string }> {
      const temporary = join(folder, name);
      await mkdir(temporary, { mode: 0o711 });
      const running = start([clip], { TMPDIR: temporary });
      await waitFor(() => running.output().includes('service ready'), {
        timeoutMs: 60_000,
        what: 'its service',
      });
      expect(await processesIn(temporary)).not.toEqual([]);
      return { running, temporary };
    }

    /** Living processes whose command line names the folder. */
    async function processesIn(path: string): Promise<string[]> {
      const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
      const commands = await Promise.all(
        pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
      );
      return commands.filter((command) => command.includes(path));
    }

    it('when it is interrupted', async () => {
      const { running, temporary } = await startAlone('interrupted');
      running.signal('SIGINT');
      expect(await running.ended).toBe(130);
      expect(running.output()).toMatch(/\ninterrupted\n$/);
      expect(await processesIn(temporary)).toEqual([]);
      expect(await readdir(temporary)).toEqual([]);
    });

    it('running when it is killed', async () => {
      const { running, temporary } = await startAlone('killed');
      running.signal('SIGKILL');
      await running.ended;
      await waitFor(async () => (await processesIn(temporary)).length === 0, {
        timeoutMs: 30_000,
        what: 'the end of the service and its database',
      });
    });
  });

  describe('of a video that is ready', () => {
    let customer: Customer;
    let video: Video;
    let token: PlaybackToken;
    beforeAll(async () => {
      customer = await signUp(stack, 'agency');
      const uploaded = await uploadFile(customer, clip);
      video = await untilReady(customer, uploaded.video.id);
      const { projectId, domain, client } = customer;
      token = await client.createPlaybackToken({ projectId, videoId: video.id, body: { domain } });
    });

    afterEach(async () => {
      const { projectId, client } = customer;
      const { status } = await client.getVideo({ projectId, videoId: video.id });
      if (status === 'held') await stack.millrace('video', 'lift', video.id);
    });

    describe('prints addresses that play in a browser', () => {
      const grant = (): Promise<PlaybackToken> => {
        const { projectId, domain, client } = customer;
        return client.createPlaybackToken({ projectId, videoId: video.id, body: { domain } });
      };
      let ending: (() => Promise<void>)[];
      beforeEach(() => {
        ending = [];
      });
      afterEach(async () => {
        for (const end of ending.reverse()) await end();
      });

      async function open(url: string, flags: readonly string[]): Promise<Page> {
        const browser = await launchChromium(flags);
        ending.push(() => browser.close());
        const page = await browser.newPage();
        await page.goto(url);
        return page;
      }
      /** Presses play and waits until time has moved on. */
      async function play(player: Frame): Promise<void> {
        await player.locator('button.large').click();
        const time = (): Promise<number> => player.evaluate('document.querySelector("video").currentTime');
        await waitFor(async () => (await time()) > 0.5, { timeoutMs: 30_000, what: 'the video to play' });
      }

      it('the player by itself', async () => {
        const page = await open((await grant()).embedUrl, []);
        await play(page.mainFrame());
      });

      it('and in a frame on a page of the customer’s, which gives it another token', async () => {
        const { domain } = customer;
        const shop = await startShopPage({ domain, token: await grant(), renew: grant });
        ending.push(() => shop.stop());
        const page = await open(shop.url, shop.browserFlags);
        const player = await waitFor(() => page.frames()[1], { what: 'the frame' });
        await play(player);
        const renewed = page.waitForResponse(`${shop.url}token`);
        await player.evaluate(
          `parent.postMessage({ type: 'millrace:token-request', v: 1, videoId: '${video.id}' }, '*')`,
        );
        const answer = (await (await renewed).json()) as { token: string };
        const { status } = await fetch(`${stack.cdn}/v/${video.id}/master.m3u8?token=${answer.token}`, {
          headers: { origin: `https://${domain}` },
        });
        expect(status).toBe(200);
      });
    });

    /** Checks playback behind a CDN that is not quite right. @returns the first failure */
    async function failureBehind(meddling: Meddling): Promise<string> {
      const meddler = await startMeddler(stack.cdn, meddling);
      const scratch = await mkdtemp(join(folder, 'files-'));
      try {
        await checkPlayback({
          ...{
            stack: { ...stack, cdn: meddler.url },
            report: createReport({ write: () => true, isTTY: false }),
          },
          ...{ customer, video, token, source: clip, folder: scratch, signal: never },
          player: createPlayer(`https://${customer.domain}`),
        });
        return 'nothing';
      } catch (error) {
        return String(error);
      } finally {
        await meddler.stop();
      }
    }

    it.each(Object.entries(wrongs))('it notices %s', async (_, { create, failure }) => {
      expect(await failureBehind(create(token.token))).toMatch(failure);
    });

    describe('it notices of webhooks', () => {
      let receiver: Receiver;
      let ending: (() => Promise<void>)[];
      beforeEach(async () => {
        receiver = await startReceiver();
        ending = [() => receiver.stop()];
      });
      afterEach(async () => {
        for (const end of ending) await end();
      });

      /** Has the video's readiness told to an address. @returns what the demo says of it */
      async function failureAt(url: string): Promise<string> {
        const report = createReport({ write: () => true, isTTY: false });
        const webhooks = await subscribe(report, customer, { receiver: { ...receiver, url }, signal: never });
        ending.push(() => unsubscribe(webhooks));
        await stack.millrace('video', 'hold', video.id);
        await stack.millrace('video', 'lift', video.id);
        return checkReadyEvent(webhooks, { name: 'told', videoId: video.id }).then(
          () => 'nothing',
          (error: unknown) => String(error),
        );
      }

      it('nothing when nothing is wrong', async () => {
        expect(await failureAt(receiver.url)).toBe('nothing');
      });

      it('that nobody listens for', async () => {
        expect(await failureAt(`${await deadAddress()}/webhooks`)).toMatch(
          /told: the first attempt failed: .*refused/i,
        );
      });

      it.each<[string, (delivery: Posted) => Posted, RegExp]>([
        [
          'whose body was changed on its way',
          ({ body, signature }) => ({ body: body.replace('"ready"', '"READY"'), signature }),
          /told: a delivery could not be verified: .*not of this body/,
        ],
        [
          'that are JSON written again',
          ({ body, signature }) => ({ body: JSON.stringify(JSON.parse(body), null, 1), signature }),
          /told: a delivery could not be verified: .*not of this body/,
        ],
        [
          'without a signature',
          ({ body }) => ({ body, signature: null }),
          /told: a delivery could not be verified: .*missing/,
        ],
      ])('%s', async (_, change, failure) => {
        const forger = await startForger(receiver.url, change);
        ending.push(() => forger.stop());
        expect(await failureAt(forger.url)).toMatch(failure);
      });

      it('signed with another secret', async () => {
        const { trust } = receiver;
        receiver = { ...receiver, trust: () => trust('whsec_another') };
        expect(await failureAt(receiver.url)).toMatch(/told: a delivery could not be verified: .*secret/);
      });
    });

    it('it notices a token that lives too long', async () => {
      const expiry = checkExpiry(
        createReport({ write: () => true, isTTY: false }),
        createPlayer('https://a.example'),
        {
          url: token.playlistUrl ?? '',
          expiresAt: new Date(),
          signal: never,
        },
      );
      await expect(expiry).rejects.toThrow('refused: expired: X-Svc-Error is');
    });
  });
});
