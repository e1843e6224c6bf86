import { jest } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { type Browser, type BrowserContext, type Frame, type Page } from 'playwright-core';
import { launchChromium } from '../testing/chromium.ts';
import { type Front, startFront } from './front.ts';

/**
 * A real browser decodes, seeks and waits by its own clock, which a busy machine holds up. What fails is shown, and tried
 * again twice; what is wrong fails three times.
 */
jest.retryTimes(2, { logErrorsBeforeRetry: true });

export const cdnHost = 'cdn.example.net';

/** What the customer's page does about its player's requests for a token; null: nothing. */
type Answerer = (() => Promise<Record<string, unknown>> | Record<string, unknown>) | null;

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

/** A real browser, a customer's pages with certificates, and a CDN behind its own name. */
export interface Theatre {
  front: Front;
  context: BrowserContext;
  /** Answers the next requests for a token. */
  answer: Answerer;
  /** Opens a page of `host` with the player of this address in its frame. */
  show(address: string, options: ShowOptions): Promise<Show>;
  /** Closes every page, and forgets what was asked for. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

interface ShowOptions {
  /** Where the page stands. */
  host: string;
  /** What the frame is asked with; the browser's own rule unless told. */
  referrerPolicy?: 'no-referrer' | undefined;
}

/** @param cdnUrl where the CDN listens */
export async function openTheatre(cdnUrl: string): Promise<Theatre> {
  let markup = '';
  const front = await startFront({ [cdnHost]: cdnUrl }, async (path) => {
    if (path === '/watch') return { type: 'text/html', body: markup };
    if (path !== '/token') return null;
    return { type: 'application/json', body: JSON.stringify((await theatre.answer?.()) ?? null) };
  });
  const browser = await launch(front);
  const context = await browser.newContext({ viewport: { width: 900, height: 560 } });
  const theatre: Theatre = {
    ...{ front, context, answer: null },
    async show(address, { host, referrerPolicy = '' }) {
      markup = customersPage(address, referrerPolicy);
      const page = await context.newPage();
      await page.goto(`https://${host}/watch`);
      return showOf(page);
    },
    async clear() {
      for (const page of context.pages()) await page.close();
      front.seen.length = 0;
      theatre.answer = null;
    },
    async close() {
      await browser.close();
      await front.close();
    },
  };
  return theatre;
}

const launch = ({ port, spki }: Front): Promise<Browser> =>
  launchChromium([
    `--host-resolver-rules=MAP * 127.0.0.1:${port}`,
    `--ignore-certificate-errors-spki-list=${spki}`,
  ]);

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
      await waitFor(async () => (await show.time()) > from + seconds, { timeoutMs: 60_000, what });
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
