import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { projectState, accountState } from '@millrace/cdn/testing';
import axe, { type AxeResults } from 'axe-core';
import { waitFor } from '@millrace/testing';
import { openStage, type Show, type Stage } from './stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterEach(async () => {
  await stage.clear();
  await stage.setState('ready');
});
afterAll(() => stage.close());

/** What axe finds wrong with the player's document, best practices included. */
async function violations(show: Show): Promise<string[]> {
  await show.frame.evaluate(axe.source);
  const { violations: found } = await show.frame.evaluate<AxeResults>('axe.run(document)');
  return found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

describe.each(['en', 'ar'] as const)('the page in %s', (lang) => {
  const direction = lang === 'ar' ? 'rtl' : 'ltr';

  it('has no violation while it plays, its menus open', async () => {
    const show = await stage.open({ query: `lang=${lang}` });
    expect(await violations(show)).toEqual([]);
    await show.play();
    await show.frame.locator('[aria-controls=settings]').click();
    expect(await violations(show)).toEqual([]);
    expect(await show.ask('document.documentElement.dir')).toBe(direction);
    expect(await show.ask('document.title')).toBe('Two & a <half>');
  });

  it('has none with a message over the video', async () => {
    const show = await stage.open({ query: `lang=${lang}` });
    await show.play();
    await stage.setState('held');
    await waitFor(async () => (await show.notice()) !== '', { timeoutMs: 30_000 });
    expect(await violations(show)).toEqual([]);
  });

  it('has none when it is refused', async () => {
    await stage.setState('deleted');
    const show = await stage.open({ query: `lang=${lang}` });
    await waitFor(async () => (await show.notice()) !== '');
    expect(await violations(show)).toEqual([]);
    expect(await show.ask('document.documentElement.dir')).toBe(direction);
  });
});

describe('how it looks', () => {
  const look = (show: Show) =>
    show.ask(`({
      logo: document.querySelector('.logo')?.getAttribute('src') ?? null,
      accent: document.getElementById('player').style.getPropertyValue('--accent'),
    })`);

  it('is the service’s own, unless white label has another [EMB-210, EMB-211]', async () => {
    const own = await look(await stage.open());
    expect(own).toEqual({ logo: expect.stringMatching(/^\.\.\/player\/logo-.*\.svg$/), accent: '' });
    await stage.harness.publish(
      { v: 1, kind: 'account', state: accountState({ version: 60, whiteLabel: true }) },
      { v: 1, kind: 'project', state: projectState({ version: 60 }) },
    );
    await stage.setState('ready');
    const branded = await look(await stage.open());
    expect(branded).toEqual({ logo: 'https://shop.example.com/logo.svg', accent: '#c01048' });
  });
});
