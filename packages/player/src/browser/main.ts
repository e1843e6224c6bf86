import { type PageSettings } from '../page-settings.ts';
import { type Texts, texts } from '../texts.ts';
import { createControls, type Controls } from './controls.ts';
import { find } from './dom.ts';
import { createEmbedder } from './embedder.ts';
import { createNotice } from './notice.ts';
import { Session } from './session.ts';

const player = find('player', HTMLElement);
const settings = JSON.parse(player.dataset['settings'] ?? '') as PageSettings;
// The page says by itself that the script has not come, unless it has.
document.getElementById('slow')?.remove();
if (settings.accent !== null) player.style.setProperty('--accent', settings.accent);
if (settings.refused === null) startPlayer(texts[settings.language]);
else explainRefusal(texts[settings.language]);

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

/** The page has the message already. Trying again needs another token when this one has expired. */
function explainRefusal(words: Texts): void {
  const { embedder: origin, videoId, refused } = settings;
  const open = (token: string): void => {
    const address = new URL(location.href);
    address.searchParams.set('token', token);
    location.replace(address);
  };
  const embedder = createEmbedder(window, { origin, videoId }, (fresh) => {
    if (fresh.token !== settings.token) open(fresh.token);
  });
  const expired = refused === 'token_expired';
  if (expired) embedder.askForToken('expired');
  embedder.tell({ event: 'error', code: refused ?? '' });
  createNotice(words, async () => {
    if (expired) {
      embedder.askForToken('expired');
      await new Promise((resolve) => setTimeout(resolve, 5_000));
    } else open(settings.token);
  });
}
