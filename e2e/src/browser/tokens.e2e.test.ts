import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { cdnHost, openStage, type Show, type Stage } from './stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterEach(async () => {
  await stage.clear();
});
afterAll(() => stage.close());

const tokensSent = (): Set<string> =>
  new Set(stage.front.seen.flatMap(({ path }) => /\/v\/.*[?&]token=([^&]+)/.exec(path)?.[1] ?? []));

const requests = async (show: Show): Promise<unknown[]> =>
  (await show.heard())
    .map(({ data }) => data)
    .filter(({ type }) => type === 'millrace:token-request')
    .map(({ reason }) => reason);

/** Notes what a viewer would notice: the media set up anew, or a wait for data (not one for a busy machine). */
async function watchForBreaks(show: Show): Promise<() => Promise<unknown>> {
  await show.ask(`(() => {
    window.breaks = [];
    for (const name of ['emptied', 'loadstart', 'pause', 'seeking', 'waiting', 'error']) {
      video.addEventListener(name, () => {
        const ahead = video.buffered.length === 0 ? 0 : video.buffered.end(video.buffered.length - 1) - video.currentTime;
        if (name !== 'waiting' || ahead < 1) window.breaks.push(name);
      });
    }
  })()`);
  return () => show.ask('window.breaks');
}

describe('a token that runs out', () => {
  it('is renewed in mid-play by the page around, without a break', async () => {
    const first = stage.token(10);
    const second = stage.token(600);
    stage.answer = () => second;
    const show = await stage.open({ token: first.token });
    await show.play();
    await show.playsOn(1);
    const breaks = await watchForBreaks(show);
    await waitFor(async () => (await requests(show)).length > 0, { what: 'a request for a token' });
    await waitFor(async () => (await show.heard()).some(({ data }) => data['event'] === 'token_renewed'));
    // The first one has expired now, as the CDN sees it.
    await stage.harness.clock.advance(11_000);
    stage.front.seen.length = 0;
    // Farther than what was buffered under it.
    await show.playsOn(8);
    await waitFor(() => stage.front.seen.some(({ path }) => path.includes('/seg-')), { timeoutMs: 40_000 });
    expect([...tokensSent()]).toEqual([second.token]);
    const failed = stage.front.seen.filter(({ host, status }) => host === cdnHost && status >= 400);
    expect(failed).toEqual([]);
    expect(await breaks()).toEqual([]);
    expect(await requests(show)).toEqual(['expiring']);
    expect(await show.notice()).toBe('');
  });

  it('is renewed also when the page does not say until when the next one lives', async () => {
    const first = stage.token(60);
    const { token } = stage.token(600);
    stage.answer = () => ({ token });
    const show = await stage.open({ token: first.token });
    await show.play();
    // Sooner than the player thinks: the CDN's clock decides.
    await stage.harness.clock.advance(61_000);
    await show.frame.getByRole('slider', { name: 'Position' }).fill('50');
    await show.playsOn(1);
    expect(await requests(show)).toEqual(['expired']);
  });

  it('is said to have expired when nobody answers, and a later answer lets it go on at the same place', async () => {
    const show = await stage.open({ token: stage.token(6).token });
    await show.play();
    await stage.harness.clock.advance(6_100);
    await show.says(/session has expired/, 30_000);
    expect(await show.ask('video.paused')).toBe(true);
    const place = await show.time();
    stage.answer = () => stage.token(600);
    await show.click('Try again');
    await show.playsOn(1);
    expect(await show.time()).toBeLessThan(place + 20);
  });

  it('that ran out during a pause is renewed on play, and a seek to the end works', async () => {
    const show = await stage.open({ token: stage.token(30).token });
    await show.play();
    await show.frame.locator('body').press('k');
    await stage.harness.clock.advance(31_000);
    stage.answer = () => stage.token(600);
    await show.frame.locator('body').press('k');
    await show.frame.getByRole('slider', { name: 'Position' }).fill('57');
    await waitFor(() => show.ask('video.ended'), { timeoutMs: 30_000, what: 'the end' });
  });

  it('that ran out during a pause is said to have expired when nobody renews it', async () => {
    const show = await stage.open({ token: stage.token(30).token });
    await show.play();
    await show.frame.locator('body').press('k');
    await stage.harness.clock.advance(31_000);
    await show.frame.locator('body').press('k');
    await show.frame.getByRole('slider', { name: 'Position' }).fill('57');
    await show.says(/session has expired/, 30_000);
  });

  it('is not replaced by one that the CDN refuses', async () => {
    const show = await stage.open({ token: stage.token(8).token });
    stage.answer = () => stage.token(600, { videoId: 'vid_0000000000000000000009' });
    await show.play();
    await waitFor(async () => (await requests(show)).length > 0);
    await show.playsOn(1);
    expect((await show.heard()).some(({ data }) => data['event'] === 'token_renewed')).toBe(false);
  });
});

describe('messages', () => {
  it('of the player go to the token’s domain alone', async () => {
    const show = await stage.open();
    await show.play();
    expect(new Set((await show.heard()).map(({ origin }) => origin))).toEqual(
      new Set(['https://cdn.example.net']),
    );
  });

  it('are taken from the page around alone: not from a frame beside it, nor from within', async () => {
    const { token } = stage.token(600);
    const message = `{ type: 'millrace:token', v: 1, token: '${token}' }`;
    const show = await stage.open();
    await show.play();
    await show.ask(`window.postMessage(${message}, '*')`);
    await show.page.evaluate(`new Promise((done) => {
      const other = document.createElement('iframe');
      other.srcdoc = "<script>parent.frames[0].postMessage(${message}, '*')</" + 'script>';
      other.onload = done;
      document.body.append(other);
    })`);
    await show.page.evaluate(`document.getElementById('player').contentWindow.postMessage(
      { type: 'millrace:token', v: 2, token: '${token}' }, '*')`);
    await show.playsOn(1);
    expect((await show.heard()).some(({ data }) => data['event'] === 'token_renewed')).toBe(false);
    expect(tokensSent()).not.toContain(token);

    await show.page.evaluate(
      `document.getElementById('player').contentWindow.postMessage(${message}, 'https://cdn.example.net')`,
    );
    await waitFor(async () => (await show.heard()).some(({ data }) => data['event'] === 'token_renewed'));
  });
});
