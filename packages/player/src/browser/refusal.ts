import { type PageSettings } from '../page-settings.ts';
import { type Texts } from '../texts.ts';
import { fileAddress, withToken } from './addresses.ts';
import { askCdn } from './cdn.ts';
import { createEmbedder } from './embedder.ts';
import { createNotice } from './notice.ts';
import { askAgainMs, isUsable } from './token-keeper.ts';

/**
 * What a refused page does: it has the message already. When only its token has expired, it asks the embedder for
 * another until there is one that works, as a playing page does.
 */
export function explainRefusal(
  { embedder: origin, videoId, refused, token }: PageSettings,
  words: Texts,
): void {
  const master = fileAddress(location.href, videoId, 'master.m3u8');
  const expired = refused === 'token_expired';
  const open = (text: string): void => location.replace(withToken(location.href, text));
  const embedder = createEmbedder(window, { origin, videoId }, (fresh) => {
    if (fresh.token === token) return;
    // Tried first: a page that hands over what is refused again would be loaded again without end.
    void askCdn(master, fresh.token).then((verdict) => {
      if (expired ? isUsable(verdict) : verdict === 'ok') open(fresh.token);
    });
  });
  const ask = (): void => embedder.askForToken('expired');
  if (expired) {
    ask();
    setInterval(ask, askAgainMs);
  }
  embedder.tell({ event: 'error', code: refused ?? '' });
  createNotice(words, async () => {
    if (!expired) {
      open(token);
      return;
    }
    ask();
    await new Promise((resolve) => setTimeout(resolve, askAgainMs));
  });
}
