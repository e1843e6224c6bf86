import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type CdnHarness, sample, startCdn, videoState } from '@millrace/cdn/testing';
import { type PlaybackClaims } from '@millrace/domain';
import { waitFor } from '@millrace/testing';
import { type Browser, type BrowserContext, chromium, type Frame, type Page } from 'playwright-core';
import { type Film, makeFilm } from './film.ts';
import { type Front, startFront } from './front.ts';

export const cdnHost = 'cdn.example.net';
const filmSeconds = 60;

/** What the customer's page does about its player's requests for a token. */
type Answerer = (() => Record<string, unknown> | null) | null;

/** A message that the customer's page got from its frame. */
interface Heard {
  origin: string;
  data: Record<string, unknown>;
}

/** A page of the customer with the player in its frame. */
export interface Show {
  page: Page;
  /** The player's document. */
  frame: Frame;
  /** Value of an expression in the player's document, where `video` is its video. */
  ask<T>(expression: string): Promise<T>;
  click(label: string): Promise<void>;
  /** Presses play and waits until time moves. */
  play(): Promise<void>;
  time(): Promise<number>;
  /** Waits until time has moved on by this many seconds. */
  playsOn(seconds: number): Promise<void>;
  /** The message shown, or an empty text. */
  notice(): Promise<string>;
  /** Waits for a message that has these words. */
  says(words: RegExp, timeoutMs?: number): Promise<void>;
  heard(): Promise<Heard[]>;
}

/** A CDN with a film, a front with certificates, and a real browser. */
export interface Stage {
  harness: CdnHarness;
  film: Film;
  front: Front;
  context: BrowserContext;
  /** Answers the next requests for a token. */
  answer: Answerer;
  open(options?: OpenOptions): Promise<Show>;
  /** The embed page's address, with a token good for an hour. */
  address(token?: string): string;
  /** Changes the film's state in the record and tells the CDN. */
  setState(status: 'ready' | 'held' | 'deleted'): Promise<void>;
  /** A token for the film that lives this long. */
  token(seconds: number, more?: Partial<PlaybackClaims>): { token: string; expiresAt: string };
  close(): Promise<void>;
}

interface OpenOptions {
  /** Where the page stands; the token's domain unless told. */
  host?: string;
  token?: string;
  /** More parameters of the embed page: `lang=ar`. */
  query?: string;
  /** What the frame is asked with; the browser's own rule unless told. */
  referrerPolicy?: 'no-referrer';
}

export async function openStage(): Promise<Stage> {
  const [harness, film] = await Promise.all([startCdn(), makeFilm(sample.videoId, filmSeconds)]);
  const { objects } = harness.store;
  await objects.put(film.indexKey, Buffer.from(JSON.stringify(film.index)));
  for (const [key, bytes] of film.objects) await objects.put(key, bytes);
  let version = 10;
  harness.record.videos.set(sample.videoId, videoState({ version, indexKey: film.indexKey }));
  await harness.beat();

  let markup = '';
  let tokens = 0;
  const front = await startFront({ host: cdnHost, url: harness.cdn.listening }, (_host, path) => {
    if (path === '/watch') return { type: 'text/html', body: markup };
    if (path !== '/token') return null;
    return { type: 'application/json', body: JSON.stringify(stage.answer?.() ?? null) };
  });
  const browser = await launch(front);
  const context = await browser.newContext({ viewport: { width: 900, height: 560 } });
  const stage: Stage = {
    ...{ harness, film, front, context, answer: null },
    async open({ host = sample.domain, token = stage.token(3_600).token, query = '', referrerPolicy } = {}) {
      const address = stage.address(token) + (query && `&${query}`);
      markup = customersPage(address, referrerPolicy ?? '');
      const page = await context.newPage();
      await page.goto(`https://${host}/watch`);
      return showOf(page);
    },
    address: (token = stage.token(3_600).token) => `https://${cdnHost}/e/${sample.videoId}?token=${token}`,
    async setState(status) {
      const state = videoState({ version: ++version, status, indexKey: film.indexKey });
      harness.record.videos.set(sample.videoId, state);
      await harness.publish({ v: 1, kind: 'video', state });
      await harness.clock.advance(1);
      await harness.beat();
    },
    token(seconds, more = {}) {
      // No two are the same, or the browser would have in its cache what another test fetched.
      const expiresAt = new Date(harness.clock.now().getTime() + seconds * 1_000 + ++tokens);
      return { token: harness.token({ expiresAt, ...more }), expiresAt: expiresAt.toISOString() };
    },
    async close() {
      await browser.close();
      await front.close();
      await harness.close();
    },
  };
  return stage;
}

const names = ['chromium', 'chromium-browser', 'google-chrome'];

/** The browser that set-up looks for on the path. */
function executable(): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  for (const path of names.flatMap((name) => folders.map((folder) => join(folder, name)))) {
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not this one.
    }
  }
  throw new Error(`none of ${names.join(', ')} is on the path`);
}

function launch({ port, spki }: Front): Promise<Browser> {
  return chromium.launch({
    executablePath: executable(),
    chromiumSandbox: process.getuid?.() !== 0,
    args: [
      `--host-resolver-rules=MAP * 127.0.0.1:${port}`,
      `--ignore-certificate-errors-spki-list=${spki}`,
      ...['--disable-background-networking', '--mute-audio', '--disable-gpu'],
    ],
  });
}

/** As docs/player.md tells a customer to do it. */
const customersPage = (source: string, referrerPolicy: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>A shop</title><link rel="icon" href="data:,"></head><body>
<iframe id="player" title="Video" src="${source}" width="800" height="450" referrerpolicy="${referrerPolicy}"
  allow="autoplay; fullscreen; picture-in-picture"></iframe>
<script>
  const heard = [];
  const frame = document.getElementById('player');
  addEventListener('message', async (message) => {
    heard.push({ origin: message.origin, data: message.data });
    if (message.origin !== 'https://${cdnHost}' || message.source !== frame.contentWindow) return;
    if (message.data.type !== 'millrace:token-request') return;
    const answer = await (await fetch('/token', { cache: 'no-store' })).json();
    if (answer === null) return;
    const { videoId } = message.data;
    frame.contentWindow.postMessage({ type: 'millrace:token', v: 1, videoId, ...answer }, message.origin);
  });
</script></body></html>`;

function showOf(page: Page): Show {
  const find = (): Frame => {
    const [, frame] = page.frames();
    if (frame === undefined) throw new Error('the page has no frame');
    return frame;
  };
  const show: Show = {
    page,
    get frame() {
      return find();
    },
    ask: (expression) =>
      find().evaluate(`(() => { const video = document.getElementById('video'); return ${expression}; })()`),
    click: (label) => find().getByRole('button', { name: label, exact: true }).last().click(),
    time: () => show.ask<number>('video.currentTime'),
    async play() {
      await find().locator('button.large').click();
      await show.playsOn(0.2);
    },
    async playsOn(seconds) {
      const from = await show.time();
      const what = `the video to play on from ${from} s`;
      await waitFor(async () => (await show.time()) > from + seconds, { timeoutMs: 30_000, what });
    },
    notice: () =>
      show.ask<string>(
        "document.getElementById('notice').hidden ? '' : document.getElementById('words').innerText.trim()",
      ),
    async says(words, timeoutMs = 15_000) {
      const what = `a message like ${String(words)}`;
      await waitFor(async () => words.test(await show.notice()), { timeoutMs, what });
    },
    heard: () => page.evaluate('heard'),
  };
  return show;
}
