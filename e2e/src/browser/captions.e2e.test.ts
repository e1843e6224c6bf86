import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { normaliseCaptions } from '@millrace/domain';
import { sample, videoState } from '@millrace/cdn/testing';
import { waitFor } from '@millrace/testing';
import { openStage, type Stage } from './stage.ts';

const srt = `1
00:00:00,200 --> 00:00:25,000
<i>Hello</i> & <3

2
00:00:30,000 --> 00:00:31,500
Later
`;

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
  const { harness } = stage;
  const file = Buffer.from(normaliseCaptions(Buffer.from(srt)));
  const key = 'captions/one/de.vtt';
  await harness.store.objects.put(key, file);
  const known = harness.record.videos.get(sample.videoId);
  const captions = [{ language: 'de', name: 'Deutsch', key, bytes: file.length }];
  harness.record.videos.set(sample.videoId, videoState({ ...known, captions }));
});
afterAll(() => stage.close());

/** What the player's document knows of the cues of its first track that has any. */
const cues = `Array.from(video.textTracks).flatMap((track) => Array.from(track.cues ?? []))
  .map(({ startTime, endTime, text }) => ({ startTime, endTime, text }))`;
const shown = `Array.from(video.textTracks).flatMap((track) => track.mode === 'showing'
  ? Array.from(track.activeCues ?? []).map((cue) => cue.getCueAsHTML().textContent) : [])`;

it('captions are offered, fetched when they are chosen, and shown at their time [CAP-206, CDN-207]', async () => {
  const show = await stage.open();
  await show.play();
  expect(stage.front.seen.filter(({ path }) => path.includes('/captions/'))).toEqual([]);
  await show.click('Settings');
  const menu = show.frame.getByLabel('Captions', { exact: true }).and(show.frame.locator('select'));
  expect(await menu.locator('option').allInnerTexts()).toEqual(['Off', 'Deutsch']);
  await menu.selectOption('Deutsch');
  await waitFor(async () => (await show.ask<unknown[]>(cues)).length === 2, { what: 'the cues' });
  const [first, second] = await show.ask<{ startTime: number; endTime: number; text: string }[]>(cues);
  expect(first?.text).toBe('<i>Hello</i> &amp; &lt;3');
  expect([first?.startTime, first?.endTime, second?.startTime, second?.endTime]).toEqual(
    [0.2, 25, 30, 31.5].map((seconds) => expect.closeTo(seconds, 1) as unknown),
  );
  await waitFor(async () => (await show.ask<string[]>(shown))[0] === 'Hello & <3', { what: 'the first cue' });
});
