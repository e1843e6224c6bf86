import { type ErrorCode } from '@millrace/contract';
import { type Language, type MessageKey, messageKeyOf, type PlayerFiles } from '@millrace/player';
import { type Clock, type Logger } from '@millrace/platform';
import { admitPage, type AdmitRules, brandingOf, permit, type PlaybackView } from '../checks.ts';
import { type Exchange } from '../http/exchange.ts';
import { splitUrl, tokensOf } from '../http/target.ts';
import { type PlaybackStates } from '../state/playback-states.ts';
import { type VerifiedToken } from '../tokens.ts';
import { createPlayerFiles } from './files.ts';
import { languageOf, wantsPage } from './language.ts';
import { type Page, renderPage } from './page.ts';
import { policyHeaders } from './policy.ts';

export interface EmbedDeps {
  admission: AdmitRules;
  states: Pick<PlaybackStates, 'view'>;
  files: PlayerFiles;
  clock: Clock;
  logger: Logger;
}

/** Answers everything beside `/v/`: the embed page `/e/{videoId}` and the player's files `/player/…`. */
export interface Embed {
  answer(exchange: Exchange): void;
}

const pagePath = /^\/e\/(vid_[A-Za-z0-9]+)$/;
const filePath = /^\/player\/([a-z0-9.-]+)$/;
const retryAfterSeconds = 5;

/** What is known of a request for the page, for an answer in words. */
interface Request {
  exchange: Exchange;
  videoId: string;
  query: string;
  language: Language;
  /** The token when it is genuine, whatever else is wrong with the request. */
  token: VerifiedToken | null;
}

export function createEmbed({ admission, states, files, clock, logger }: EmbedDeps): Embed {
  const answerFile = createPlayerFiles(files);

  const answerPage = (exchange: Exchange, videoId: string, query: string): void => {
    exchange.route = 'embed';
    const language = languageOf(query, exchange.header('accept-language'));
    const now = clock.now();
    const { token, refused } = admitPage(videoId, tokensOf(query), exchange.head, now, admission);
    const request = { exchange, videoId, query, language, token };
    if (refused !== null || token === null) {
      refuse(request, refused ?? 'token_invalid');
      return;
    }
    const view = states.view(videoId, now.getTime());
    if (!(view instanceof Promise)) {
      decide(request, token, view);
      return;
    }
    view
      .then((read) => {
        if (!exchange.gone) decide(request, token, read);
      })
      .catch((error: unknown) => {
        logger.error({ err: error, route: exchange.route }, 'request failed');
        if (!exchange.gone) refuse(request, 'internal_error');
      });
  };

  const decide = (request: Request, token: VerifiedToken, view: PlaybackView | null): void => {
    const refusal = view === null ? null : permit({ quality: null }, view);
    if (view === null) refuse(request, 'state_unavailable');
    else if (refusal !== null) refuse(request, refusal.refused, wordsFor(refusal.refused, view));
    else if ((view.video?.indexKey ?? null) === null) refuse(request, 'not_found');
    else play(request, token, view);
  };

  const play = (request: Request, token: VerifiedToken, view: PlaybackView): void => {
    const { exchange, videoId } = request;
    const branding = brandingOf(view);
    const plain = pageOf(request, null);
    const page = renderPage({
      ...plain,
      settings: plain.settings && { ...plain.settings, accent: branding?.primaryColor ?? null },
      title: view.video?.title ?? null,
      branding,
      poster: `../v/${videoId}/poster.jpg${token.query}`,
    });
    const { domain } = token.claims;
    const headers = [...pageHeaders, ...policyHeaders({ domain, logoUrl: branding?.logoUrl ?? null })];
    exchange.send(headers, Buffer.byteLength(page), () => page);
  };

  const refuse = (request: Request, code: ErrorCode, words: MessageKey = messageKeyOf(code)): void => {
    const { exchange, token } = request;
    const passing = code === 'state_unavailable' ? { retryAfterSeconds } : {};
    if (!wantsPage(exchange.header('accept'))) {
      exchange.refuse(code, { ...passing, headers: ['Vary', 'Accept, Accept-Language'] });
      return;
    }
    const headers = policyHeaders({ domain: token?.claims.domain ?? null, logoUrl: null });
    headers.push('Vary', 'Accept, Accept-Language');
    exchange.refuse(code, { ...passing, headers, page: Buffer.from(renderPage(pageOf(request, words))) });
  };

  const pageOf = ({ videoId, query, language, token }: Request, refused: MessageKey | null): Page => ({
    ...{ files, language, refused, title: null, branding: null, poster: null },
    settings: token && {
      ...{ videoId, language, refused, token: token.text },
      embedder: `https://${token.claims.domain}`,
      expiresAtMs: token.expiresAtMs,
      nowMs: clock.now().getTime(),
      accent: null,
    },
    again: againWith(query),
  });

  return {
    answer(exchange) {
      const { path, query } = splitUrl(exchange.url);
      const videoId = pagePath.exec(path)?.[1];
      const name = filePath.exec(path)?.[1];
      if (videoId !== undefined) answerPage(exchange, videoId, query);
      else if (name !== undefined) {
        exchange.route = 'player';
        answerFile(name, exchange);
      } else exchange.refuse('not_found');
    },
  };
}

const pageHeaders = [
  ...['Content-Type', 'text/html; charset=utf-8', 'Cache-Control', 'no-store'],
  ...['Vary', 'Accept, Accept-Language'],
];

/** The page may tell apart what the code does not. */
function wordsFor(code: ErrorCode, { video }: PlaybackView): MessageKey {
  if (code !== 'video_unavailable' || video === null) return messageKeyOf(code);
  if (video.status === 'held') return 'video_held';
  return video.status === 'deleted' ? 'video_deleted' : 'video_unavailable';
}

/** The parameters that a new try keeps. */
function againWith(query: string): [string, string][] {
  const given = new URLSearchParams(query);
  return ['token', 'lang'].flatMap((name) =>
    [...new Set(given.getAll(name))].map((value): [string, string] => [name, value]),
  );
}
