import { type PageSettings } from '../page-settings.ts';
import { type Texts, texts } from '../texts.ts';
import { createControls, type Controls } from './controls.ts';
import { find } from './dom.ts';
import { createNotice } from './notice.ts';
import { explainRefusal } from './refusal.ts';
import { Session } from './session.ts';

const player = find('player', HTMLElement);
const settings = JSON.parse(player.dataset['settings'] ?? '') as PageSettings;
// The page says by itself that the script has not come, unless it has.
document.getElementById('slow')?.remove();
if (settings.accent !== null) player.style.setProperty('--accent', settings.accent);
if (settings.refused === null) startPlayer(texts[settings.language]);
else explainRefusal(settings, texts[settings.language]);

function startPlayer(words: Texts): void {
  const video = find('video', HTMLVideoElement);
  let controls: Controls | null = null;
  const notice = createNotice(words, () => session.retry());
  const session = new Session(video, settings, {
    onChoices: (choices) => controls?.offer(choices),
    onQuality: (position) => controls?.showQuality(position),
    onProblem(key) {
      if (key === null) notice.hide();
      else notice.show(key);
      // After the message: it takes the focus over from controls that go away.
      controls?.enable(key === null);
    },
  });
  if (session.engine !== null) controls = createControls(video, session.engine, words);
  session.open();
}
