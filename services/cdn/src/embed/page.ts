import { type Branding } from '@millrace/contract';
import {
  directions,
  type Language,
  type MessageKey,
  type PageSettings,
  type PlayerFiles,
  texts,
} from '@millrace/player';
import { html, markup, type Markup } from './html.ts';

/** What a page is made of. Addresses in it are relative, so that it can lie below any prefix. */
export interface Page {
  files: PlayerFiles;
  language: Language;
  /** The video's title; null where it is not known or not to be told. */
  title: string | null;
  /** Null: the service's own look. */
  branding: Branding | null;
  /** Null for a page without a script: only a genuine token says whom it may speak with. */
  settings: PageSettings | null;
  /** The message shown; null: the page plays. */
  refused: MessageKey | null;
  /** Parameters with which "Try again" asks again. */
  again: readonly (readonly [name: string, value: string])[];
  /** Address of the poster, with its token. */
  poster: string | null;
}

/** The embed page: a whole document in UTF-8, with nothing inline that a strict policy would have to allow. */
export function renderPage(page: Page): string {
  const { language, files, settings } = page;
  const { labels } = texts[language];
  const title = page.title ?? labels.untitled;
  return html`<!doctype html>
    <html lang="${language}" dir="${directions[language]}">
      <head>
        <meta charset="utf-8" />
        <title>${title}</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <link rel="stylesheet" href="../player/${files.style.name}" />
        ${settings === null ? null : html`<script src="../player/${files.script.name}" defer></script> `}
      </head>
      <body>
        <main
          id="player"
          class="player"
          aria-label="${labels.player}"
          ${settings === null ? null : html` data-settings="${JSON.stringify(settings)}"`}
        >
          <h1 class="title" dir="auto">${title}</h1>
          ${page.refused === null ? playing(page) : null}${notice(page)}
        </main>
      </body>
    </html> `.text;
}

function playing({ language, poster, branding, files }: Page): Markup {
  const { labels } = texts[language];
  return html`<video
      id="video"
      playsinline
      preload="metadata"
      tabindex="-1"
      ${poster === null ? null : html` poster="${poster}"`}
    ></video>
    ${logo(files, branding, labels.customerLogo)}
    <p id="slow" class="slow">${labels.slow}</p> `;
}

/** The service's logo, unless white label has another in its place or hides it. */
function logo({ logo: own }: PlayerFiles, branding: Branding | null, label: string): Markup | null {
  const customers = branding?.logoUrl ?? null;
  if (customers !== null) {
    return html`<img class="logo" src="${customers}" alt="${label}" referrerpolicy="no-referrer" /> `;
  }
  if (branding?.hideLogo === true) return null;
  return html`<img class="logo" src="../player/${own.name}" alt="Millrace" width="116" height="24" /> `;
}

/** The message, with a button that asks again also without a script. */
function notice({ language, refused, again }: Page): Markup {
  const { labels, messages } = texts[language];
  const words = refused === null ? null : messages[refused];
  const fields = again.map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`.text,
  );
  return html`<div id="notice" class="notice" ${refused === null ? html` hidden` : null}>
    <div id="words" role="alert">
      ${
        words &&
        html`<h2>${words.title}</h2>
          <p>${words.text}</p>`
      }
    </div>
    <form id="retry" method="get">
      ${markup(fields.join(''))}<button type="submit">${labels.retry}</button>
    </form>
  </div> `;
}
