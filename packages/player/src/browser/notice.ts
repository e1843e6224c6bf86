import { type MessageKey, type Texts } from '../texts.ts';
import { find, make } from './dom.ts';

/** The message over the picture. The page brings it, so that it can be read without this script too. */
export interface Notice {
  show(key: MessageKey): void;
  hide(): void;
}

/** @param retry called when the viewer wants to try again; the button waits for it */
export function createNotice(texts: Texts, retry: () => Promise<void>): Notice {
  const element = find('notice', HTMLElement);
  const form = find('retry', HTMLFormElement);
  const button = form.querySelector('button');
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (button?.disabled !== false) return;
    button.disabled = true;
    void retry().finally(() => (button.disabled = false));
  });
  return {
    show(key) {
      const { title, text } = texts.messages[key];
      const words = find('words', HTMLElement);
      words.replaceChildren(make('h2', {}, title), make('p', {}, text));
      element.hidden = false;
      const focused = document.activeElement;
      if (focused !== null && focused !== document.body) button?.focus();
    },
    hide() {
      element.hidden = true;
    },
  };
}
