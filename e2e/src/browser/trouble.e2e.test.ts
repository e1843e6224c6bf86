import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { ObjectStoreError } from '@millrace/objects';
import { waitFor } from '@millrace/testing';
import { openStage, type Stage } from './stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterEach(async () => {
  await stage.context.unrouteAll();
  await stage.context.setOffline(false);
  await stage.clear();
  stage.harness.store.interfere = null;
  await stage.setState('ready');
  await stage.setAccount({});
});
afterAll(() => stage.close());

jest.setTimeout(180_000);
/** Contract: "stops playing within about a minute". */
const aboutAMinute = 60_000;

describe('a video that may not play any more', () => {
  it.each([
    ['held', /This video is on hold/],
    ['deleted', /This video has been deleted/],
  ] as const)('stops when it is %s, says why, and goes on after that [CDN-310]', async (state, words) => {
    const show = await stage.open();
    await show.play();
    // To where all that is left is fetched: no refused request will stop it.
    await show.frame.getByRole('slider', { name: 'Position' }).fill('35');
    const fetched = 'video.currentTime > 35 && video.buffered.end(video.buffered.length - 1) > 59.5';
    await waitFor(() => show.ask(fetched), { timeoutMs: 30_000, what: 'all of the rest' });
    await stage.setState(state);
    await show.says(words, aboutAMinute);
    expect(await show.ask('video.paused')).toBe(true);
    const place = await show.time();
    const errors = (await show.heard()).filter(({ data }) => data['event'] === 'error');
    expect(errors.map(({ data }) => data['code'])).toEqual(['video_unavailable']);

    // The old words stand until the answer is there.
    const refused = stage.context.waitForEvent('response', {
      predicate: (response) => response.status() === 403,
      timeout: 60_000,
    });
    await show.click('Try again');
    await refused;
    await show.says(words);
    await stage.setState('ready');
    await show.click('Try again');
    await show.playsOn(1);
    expect(await show.notice()).toBe('');
    expect(await show.time()).toBeLessThan(place + 20);
  });

  it('stops when the account is over its limit', async () => {
    const show = await stage.open();
    await show.play();
    await stage.setAccount({ overWatchLimit: true });
    await show.says(/limit of its owner/, aboutAMinute);
    await stage.setAccount({});
    await show.click('Try again');
    await show.playsOn(1);
  });
});

describe('a plan that loses a quality', () => {
  it.each(['Automatic', '720p'])('lets the video play on in the next one; chosen: %s', async (chosen) => {
    const show = await stage.open();
    await show.play();
    await show.click('Settings');
    const quality = show.frame.getByLabel('Quality');
    const value = await quality.locator('option', { hasText: chosen }).getAttribute('value');
    await quality.selectOption(value);
    await waitFor(() => show.ask('video.videoWidth === 640'), { timeoutMs: 30_000, what: '720p' });
    const place = await show.time();
    await stage.setAccount({ maxQuality: '360p' });
    await waitFor(
      () => show.ask('video.videoWidth === 320 && document.querySelectorAll("#quality option").length === 2'),
      {
        timeoutMs: 60_000,
        what: '360p, and no other choice',
      },
    );
    await show.playsOn(1);
    expect(await show.notice()).toBe('');
    expect(await show.time()).toBeGreaterThan(place);
  });
});

describe('a page that is refused', () => {
  it('says that the video is on hold, and plays once it is not [EMB-201]', async () => {
    await stage.setState('held');
    const show = await stage.open();
    await show.says(/This video is on hold/);
    await stage.setState('ready');
    await show.click('Try again');
    await waitFor(() => show.ask('video !== null'));
    await show.play();
  });

  it('says that the video was deleted, and plays when it is back', async () => {
    await stage.setState('deleted');
    const show = await stage.open({ query: 'lang=ar' });
    await show.says(/تم حذف هذا الفيديو/);
    await stage.setState('ready');
    await show.click('حاول مرة أخرى');
    await waitFor(() => show.ask('video !== null'));
    expect(await show.ask('document.documentElement.lang')).toBe('ar');
    await show.play();
  });

  it('says that the token has expired, and plays with the one that its page hands over [EMB-201]', async () => {
    const { token } = stage.token(-10);
    const show = await stage.open({ token });
    await show.says(/session has expired/);
    stage.answer = () => stage.token(600);
    await show.click('Try again');
    await waitFor(() => show.ask('video !== null'));
    await show.play();
  });

  it('asks for a token until its page has one that works, and goes on by itself', async () => {
    const { token } = stage.token(-10);
    stage.answer = () => stage.token(-10);
    const show = await stage.open({ token });
    const asked = async (): Promise<number> =>
      (await show.heard()).filter(({ data }) => data['type'] === 'millrace:token-request').length;
    await waitFor(async () => (await asked()) > 1, { what: 'another request for a token' });
    await show.says(/session has expired/);
    // Not loaded again for a token that is of no use.
    expect(stage.front.seen.filter(({ path }) => path.startsWith('/e/'))).toHaveLength(1);
    stage.answer = () => stage.token(600);
    await waitFor(() => show.ask('video !== null'), { what: 'the player' });
    await show.play();
  });

  it('can be read without a script', async () => {
    await stage.setState('held');
    const browser = stage.context.browser();
    const context = await browser?.newContext({ javaScriptEnabled: false });
    const page = await context?.newPage();
    const address = stage.address();
    await page?.goto(address);
    expect(await page?.getByRole('alert').innerText()).toContain('This video is on hold');
    await page?.getByRole('button', { name: 'Try again' }).click();
    expect(page?.url()).toBe(address);
    await context?.close();
  });
});

describe('what cannot be fetched', () => {
  it('is asked for at most ten times, then playback moves on behind it', async () => {
    const show = await stage.open();
    const missing = '/seg-4.m4s';
    await stage.context.route(`**/*p${missing}*`, (route) =>
      route.fulfill({ status: 404, headers: { 'X-Svc-Error': 'not_found' } }),
    );
    let asked = 0;
    stage.context.on('request', (request) => {
      if (request.url().includes(`p${missing}`)) asked++;
    });
    await show.play();
    await waitFor(async () => (await show.time()) > 12, {
      timeoutMs: 45_000,
      what: 'the other side of the hole',
    });
    expect(asked).toBeGreaterThan(0);
    expect(asked).toBeLessThanOrEqual(10);
    expect(await show.notice()).toBe('');
    await stage.context.unroute(`**/*p${missing}*`);
  });

  it('ends in words when everything behind is missing too', async () => {
    const show = await stage.open();
    await show.play();
    const asked = new Map<string, number>();
    await stage.context.route(/seg-/, (route) => {
      const { pathname } = new URL(route.request().url());
      asked.set(pathname, (asked.get(pathname) ?? 0) + 1);
      return route.fulfill({ status: 404, headers: { 'X-Svc-Error': 'not_found' } });
    });
    await show.frame.getByRole('slider', { name: 'Position' }).fill('45');
    await show.says(/part of this video is missing/, 90_000);
    expect(Math.max(...asked.values())).toBeLessThanOrEqual(10);
    await stage.context.unroute(/seg-/);
    await show.click('Try again');
    await show.playsOn(1);
  });

  it('is told as a lost connection when nothing answers, and goes on by itself when that is back', async () => {
    const show = await stage.open();
    await show.play();
    await stage.context.setOffline(true);
    await show.frame.getByRole('slider', { name: 'Position' }).fill('50');
    await show.says(/connection was lost/, 60_000);
    await stage.context.setOffline(false);
    await show.playsOn(1);
    expect(await show.notice()).toBe('');
  });

  it('is told as our fault while the store is away', async () => {
    // A CDN of its own, that has nothing of the film in its memory.
    const cold = await openStage();
    try {
      const show = await cold.open();
      await waitFor(() => show.ask('document.querySelectorAll("#quality option").length > 1'));
      cold.harness.store.interfere = () => {
        throw new ObjectStoreError('unavailable', 'away');
      };
      await show.frame.locator('button.large').click();
      await show.says(/service cannot answer/, 60_000);
      cold.harness.store.interfere = null;
      await show.click('Try again');
      await show.playsOn(1);
    } finally {
      await cold.close();
    }
  });
});
