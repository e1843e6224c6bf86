import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { sample } from '@millrace/cdn/testing';
import { cdnHost, openStage, type Stage } from './stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterEach(async () => {
  await stage.clear();
});
afterAll(() => stage.close());

const segmentsOf = (quality: string): number =>
  stage.front.seen.filter(({ path }) => path.includes(`/${quality}/seg-`)).length;

describe('the embed page in a frame on the token’s domain', () => {
  it('plays, and time moves on [EMB-209]', async () => {
    const show = await stage.open();
    await show.play();
    await show.playsOn(2);
    expect(await show.ask('video.videoWidth')).toBeGreaterThan(0);
    expect(await show.ask('video.duration')).toBeCloseTo(60, 0);
    expect(await show.notice()).toBe('');
    const events = (await show.heard()).map(({ data }) => data['event']);
    expect(events).toEqual(['ready', 'play']);
  });

  it('fetches no media before the first play: nobody has watched it', async () => {
    const show = await stage.open();
    await waitFor(() => stage.front.seen.some(({ path }) => path.includes('master.m3u8')));
    await waitFor(() => show.ask('document.querySelectorAll("#quality option").length > 1'));
    expect(stage.front.seen.filter(({ path }) => path.includes('/seg-'))).toEqual([]);
    expect(stage.front.seen.find(({ path }) => path.includes('poster.jpg'))?.status).toBe(200);
  });

  it('does nothing that its policy forbids, and asks nobody but the CDN [EMB-205]', async () => {
    const complaints: string[] = [];
    stage.context.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    const asked = new Set<string>();
    stage.context.on('request', (request) => {
      if (request.frame().parentFrame() !== null) asked.add(new URL(request.url()).host);
    });
    stage.context.on('weberror', (error) => complaints.push(String(error.error())));
    const show = await stage.open();
    await show.play();
    await show.click('Settings');
    expect(complaints).toEqual([]);
    expect([...asked]).toEqual([cdnHost]);
    expect(stage.front.seen.filter(({ host, status }) => host === cdnHost && status >= 400)).toEqual([]);
  });

  it('seeks by its bar, by keys and by digits', async () => {
    const show = await stage.open();
    await show.play();
    const seek = show.frame.getByRole('slider', { name: 'Position' });
    await seek.fill('40');
    await waitFor(async () => (await show.time()) >= 40);
    await show.playsOn(0.5);
    await show.frame.locator('body').press('2');
    await waitFor(async () => Math.abs((await show.time()) - 12) < 3);
    await show.frame.locator('body').press('l');
    await waitFor(async () => (await show.time()) > 20);
    await show.playsOn(0.5);
    expect(await seek.getAttribute('aria-valuetext')).toMatch(/^0:2\d of 1:00$/);
  });

  it('plays the quality that is chosen', async () => {
    const show = await stage.open();
    await show.play();
    await show.click('Settings');
    const quality = show.frame.getByLabel('Quality');
    expect(await quality.locator('option').allInnerTexts()).toEqual([
      expect.stringMatching(/^Automatic( \(\d+p\))?$/),
      '720p',
      '360p',
    ]);
    for (const [name, width] of [
      ['360p', 320],
      ['720p', 640],
    ] as const) {
      await quality.selectOption({ label: name });
      const what = `${name} on the screen`;
      await waitFor(() => show.ask(`video.videoWidth === ${width}`), { timeoutMs: 30_000, what });
      expect(segmentsOf(name)).toBeGreaterThan(0);
    }
    await show.playsOn(0.5);
    await show.frame.getByLabel('Speed').selectOption({ label: '2×' });
    expect(await show.ask('video.playbackRate')).toBe(2);
  });

  it('obeys its keys, and leaves those alone that a focused control uses', async () => {
    const show = await stage.open();
    await show.play();
    const press = (key: string) => show.frame.locator('body').press(key);
    await press('k');
    expect(await show.ask('video.paused')).toBe(true);
    await press('m');
    expect(await show.ask('video.muted')).toBe(true);
    await press('m');
    await press('ArrowDown');
    expect(await show.ask('video.volume')).toBeCloseTo(0.95);
    await press('f');
    await waitFor(() => show.ask('document.fullscreenElement !== null'));
    await press('f');
    await waitFor(() => show.ask('document.fullscreenElement === null'));
    const before = await show.time();
    await show.frame.getByRole('slider', { name: 'Volume' }).press('ArrowLeft');
    expect(await show.ask('video.volume')).toBeCloseTo(0.9);
    expect(await show.time()).toBe(before);
    await show.frame.getByRole('button', { name: 'Mute' }).press(' ');
    expect(await show.ask('[video.muted, video.paused]')).toEqual([true, true]);
  });

  it('plays to the end and tells its page', async () => {
    const show = await stage.open();
    await show.play();
    await show.frame.getByRole('slider', { name: 'Position' }).fill('58.500');
    await waitFor(() => show.ask('video.ended'));
    const events = (await show.heard()).map(({ data }) => data['event']);
    expect(events.at(-1)).toBe('ended');
  });
});

describe('elsewhere', () => {
  it('does not load in a frame on another domain [EMB-202, EMB-203]', async () => {
    const show = await stage.open({ host: 'other.example.com' });
    await waitFor(() => stage.front.seen.find(({ path }) => path.startsWith('/e/')));
    const [, frame] = show.page.frames();
    await waitFor(() => frame?.url().startsWith('chrome-error:'));
    expect(await show.heard()).toEqual([]);
    expect(stage.front.seen.find(({ path }) => path.startsWith('/e/'))?.status).toBe(403);
    expect(stage.front.seen.some(({ path }) => path.startsWith('/v/'))).toBe(false);
  });

  it('does not load there either when the page sends no referrer: the browser keeps to frame-ancestors [EMB-203]', async () => {
    const show = await stage.open({ host: 'other.example.com', referrerPolicy: 'no-referrer' });
    await waitFor(() => stage.front.seen.find(({ path }) => path.startsWith('/e/')));
    const [, frame] = show.page.frames();
    await waitFor(() => frame?.url().startsWith('chrome-error:'));
    expect(stage.front.seen.find(({ path }) => path.startsWith('/e/'))?.status).toBe(200);
    expect(stage.front.seen.some(({ path }) => path.startsWith('/v/'))).toBe(false);
  });

  it('plays on its own domain though the page sends no referrer [EMB-202]', async () => {
    const show = await stage.open({ referrerPolicy: 'no-referrer' });
    await show.play();
  });
});

describe('other players', () => {
  it('play to the end when they do no more than follow addresses', async () => {
    const { token } = stage.token(600);
    const master = `${stage.harness.cdn.listening}/v/${sample.videoId}/master.m3u8?token=${token}`;
    const { stderr } = await promisify(execFile)('ffmpeg', [
      ...['-v', 'error', '-stats', '-headers', `Referer: https://${sample.domain}/\r\n`, '-i', master],
      ...['-map', '0:v:0', '-map', '0:a:0', '-f', 'null', '-'],
    ]);
    expect(stderr).toMatch(/time=00:00:59\.9|time=00:01:00/);
    expect(stderr).not.toMatch(/error|HTTP|invalid/i);
  });

  it('are used where the browser has no media source extensions', async () => {
    await stage.context.addInitScript(
      'delete window.MediaSource; delete window.ManagedMediaSource; delete window.WebKitMediaSource;',
    );
    const first = stage.token(10);
    const second = stage.token(600);
    stage.answer = () => second;
    const show = await stage.open({ token: first.token });
    expect(await show.ask("video.canPlayType('application/vnd.apple.mpegurl')")).not.toBe('');
    await show.play();
    const before = await show.time();
    await waitFor(async () => (await show.heard()).some(({ data }) => data['event'] === 'token_renewed'));
    await stage.harness.clock.advance(11_000);
    await show.playsOn(1);
    expect(await show.ask('video.currentSrc')).toContain(second.token);
    expect(await show.time()).toBeGreaterThan(before);
  });
});
