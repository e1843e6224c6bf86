import { ObjectStoreError } from '@millrace/objects';
import { clientIp, type Clock, type Logger } from '@millrace/platform';
import { admit, type AdmitRules, permit, type PlaybackView } from './checks.ts';
import { type Blocks, type OnBytes } from './delivery/blocks.ts';
import { type Deliveries } from './delivery/deliveries.ts';
import { type Delivery, linkedText, type LinkedText, type ServedBlock } from './delivery/delivery.ts';
import { type Exchange, type Metering } from './http/exchange.ts';
import { parseTarget, splitUrl, type Target, tokensOf } from './http/target.ts';
import { splitVttAtPictures } from '@millrace/domain';
import { type PlaybackStates } from './state/playback-states.ts';
import { type VerifiedToken } from './tokens.ts';
import { type UsageMeter } from './usage/usage-meter.ts';

/** Browsers cache segments for a day and playlists for 30 seconds (contract, "Playback protection"). */
const immutable = 'private, max-age=86400, immutable';
/** Playlists, and what may be replaced under the same address: pictures, captions. */
const brief = 'private, max-age=30';
/** Seconds after which a refusal that is our fault is worth another try. */
const retryAfterSeconds = 5;
/** A playlist or storyboard that is rewritten is held as text. */
const maximumTextBytes = 8 * 1024 * 1024;

export interface PlaybackDeps {
  admission: AdmitRules;
  states: Pick<PlaybackStates, 'view'>;
  deliveries: Deliveries;
  blocks: Blocks;
  meter: Pick<UsageMeter, 'missing' | 'sent'>;
  trustedProxies: number;
  clock: Clock;
  logger: Logger;
}

/** What one admitted request wants, carried through the steps that may wait. */
interface Admitted {
  exchange: Exchange;
  target: Target;
  token: VerifiedToken;
}

/**
 * Answers a request for `/v/…`: checks in the contract's order, then serves. Everything that is in memory is
 * answered in the same turn; only a miss waits.
 */
export class Playback {
  readonly #deps: PlaybackDeps;

  constructor(deps: PlaybackDeps) {
    this.#deps = deps;
  }

  answer(exchange: Exchange): void {
    const { path, query } = splitUrl(exchange.url);
    const target = parseTarget(path);
    if (target === null) {
      exchange.refuse('not_found');
      return;
    }
    exchange.route = target.kind;
    const now = this.#deps.clock.now();
    const token = admit(target, tokensOf(query), exchange.head, now, this.#deps.admission);
    if ('refused' in token) {
      exchange.refuse(token.refused);
      return;
    }
    const admitted = { exchange, target, token };
    const view = this.#deps.states.view(target.videoId, now.getTime());
    if (view instanceof Promise) this.#later(admitted, view, (read) => this.#decide(admitted, read));
    else this.#decide(admitted, view);
  }

  #decide(admitted: Admitted, view: PlaybackView | null): void {
    const { exchange, target } = admitted;
    if (view === null) {
      exchange.refuse('state_unavailable', { retryAfterSeconds });
      return;
    }
    const refusal = permit(target, view);
    if (refusal !== null) {
      exchange.refuse(refusal.refused);
      return;
    }
    const indexKey = view.video?.indexKey ?? null;
    if (indexKey === null) {
      exchange.refuse('not_found');
      return;
    }
    const delivery = this.#deps.deliveries.cached(indexKey);
    if (delivery !== undefined) this.#deliver(admitted, view, delivery);
    else {
      const loaded = this.#deps.deliveries.load(indexKey, target.videoId);
      this.#later(admitted, loaded, (read) => this.#deliver(admitted, view, read));
    }
  }

  #deliver(admitted: Admitted, view: PlaybackView, delivery: Delivery): void {
    const { exchange, target } = admitted;
    const captions = view.video?.captions;
    if (isPlaylist(target)) {
      const playlist = delivery.playlist(target, view.account?.maxQuality ?? '360p', captions);
      if (playlist === null) exchange.refuse('not_found');
      else sendText(admitted, playlist);
      return;
    }
    const block =
      target.kind === 'cues' ? delivery.captionsBlock(target, captions ?? []) : delivery.block(target);
    if (block === null) exchange.refuse('not_found');
    else if (hasLinks(target.file)) this.#sendLinked(admitted, delivery, block);
    else this.#sendBlock(admitted, block, this.#metering(admitted, view, delivery, block));
  }

  #sendBlock(admitted: Admitted, block: ServedBlock, metering: Metering | null): void {
    const { exchange, target } = admitted;
    const cacheControl = target.kind === 'file' || target.kind === 'cues' ? brief : immutable;
    const headers = ['Content-Type', block.contentType, 'Cache-Control', cacheControl];
    const more = { etag: block.etag, ...(metering && { metering }) };
    const send = (body: Buffer | null): void => exchange.send(headers, block.bytes, body, more);
    // The length is known from the index: nothing is read to be left out.
    const cached = exchange.method === 'HEAD' ? null : this.#deps.blocks.cached(block);
    if (cached !== undefined) send(cached);
    else if (!exchange.isPlain) this.#withBytes(admitted, block, send);
    else {
      // Handed on while it is being fetched: the first byte does not wait for the last.
      let coming: OnBytes | undefined;
      const onBytes: OnBytes = (body, filled) => {
        if (exchange.gone) return;
        coming ??= exchange.sendComing(headers, block.bytes, more);
        coming(body, filled);
      };
      this.#later(admitted, this.#deps.blocks.fetch(block, exchange.whenGone(), onBytes), () => undefined);
    }
  }

  /** A file with links to its siblings: read and cut once, then like any playlist. */
  #sendLinked(admitted: Admitted, delivery: Delivery, block: ServedBlock): void {
    const { file } = admitted.target;
    const kept = delivery.keptText(file);
    if (kept !== undefined) {
      sendText(admitted, kept);
      return;
    }
    if (block.bytes > maximumTextBytes) {
      throw new Error(`${block.key} is too long to be rewritten`);
    }
    this.#withBytes(admitted, block, (bytes) => {
      const pieces = splitVttAtPictures(bytes.toString('utf8'));
      sendText(admitted, delivery.keepText(file, linkedText(pieces, block.contentType)));
    });
  }

  #withBytes(admitted: Admitted, block: ServedBlock, use: (bytes: Buffer) => void): void {
    const { blocks } = this.#deps;
    const cached = blocks.cached(block);
    if (cached !== undefined) use(cached);
    else this.#later(admitted, blocks.fetch(block, admitted.exchange.whenGone()), use);
  }

  /**
   * Watched time counts video segments that a playback token fetches; preview, demo and HEAD do not count. Null
   * also for what counts already.
   */
  #metering(
    { exchange, target, token }: Admitted,
    view: PlaybackView,
    delivery: Delivery,
    block: ServedBlock,
  ): Metering | null {
    const counts = target.kind === 'segment' && target.quality !== null && token.claims.kind === 'playback';
    if (!counts || view.account === null || exchange.method === 'HEAD') return null;
    const { meter, trustedProxies } = this.#deps;
    const watched = {
      token,
      ip: clientIp(exchange.remoteAddress, exchange.head.forwardedFor, trustedProxies),
      accountId: view.account.accountId,
      segment: target.n,
      ms: delivery.segmentMs(target),
      bytes: block.bytes,
    };
    const missing = meter.missing(watched);
    return missing === 0 ? null : { splitAt: missing, sent: (bytes) => meter.sent(watched, bytes) };
  }

  /** Goes on when `work` is there; a failure becomes an answer, unless the viewer has gone meanwhile. */
  #later<T>({ exchange }: Admitted, work: Promise<T>, then: (value: T) => void): void {
    work
      .then((value) => {
        if (!exchange.gone) then(value);
      })
      .catch((error: unknown) => {
        if (!exchange.gone) this.failed(exchange, error);
      });
  }

  /** Answers a request that something of ours failed. */
  failed(exchange: Exchange, error: unknown): void {
    // The record names the object, so a store without it is no reason to try again.
    if (error instanceof ObjectStoreError && error.code === 'no_such_key') {
      this.#deps.logger.error({ err: error, route: exchange.route }, 'an object of a ready video is missing');
      exchange.refuse('not_found');
      return;
    }
    const passing = error instanceof ObjectStoreError && error.code === 'unavailable';
    this.#deps.logger.error({ err: error, route: exchange.route }, 'request failed');
    if (passing) exchange.refuse('service_unavailable', { retryAfterSeconds });
    else exchange.refuse('internal_error');
  }
}

const isPlaylist = ({ kind }: Target): boolean =>
  kind === 'master' || kind === 'media' || kind === 'iframes' || kind === 'captions';

/** Captions are the customer's text, and not among these: a line of it that looks like a link is none. */
const hasLinks = (file: string): boolean => file === 'storyboard.vtt';

function sendText({ exchange, token }: Admitted, { pieces, bytes, contentType }: LinkedText): void {
  const size = bytes + (pieces.length - 1) * token.query.length;
  const headers = ['Content-Type', contentType, 'Cache-Control', brief];
  exchange.send(headers, size, () => pieces.join(token.query));
}
