import { fileAddress } from './addresses.ts';
import { askCdn, askPage } from './cdn.ts';
import { createEmbedder, type Embedder } from './embedder.ts';
import { type Choices, type Engine, type EngineEvents, type Trouble } from './engine.ts';
import { canUseHls, createHlsEngine } from './hls-engine.ts';
import { canPlayNatively, createNativeEngine } from './native-engine.ts';
import { type PageSettings } from '../page-settings.ts';
import { messageKeyOf, type MessageKey } from '../texts.ts';
import { TokenKeeper } from './token-keeper.ts';

/** A held or deleted video stops within about a minute: what is buffered would play on for longer than that. */
const checkEveryMs = 15_000;
/** A video that should play and does not for this long is not left with a spinner. */
const stalledMs = 30_000;
/** What passes by itself is tried again this often, and this many times in a row. */
const tryAgainMs = 5_000;
const maximumTries = 60;
/** What a reload did not mend, another so soon will not. */
const reloadEveryMs = 10_000;
const passing: ReadonlySet<MessageKey> = new Set(['network_lost', 'state_unavailable']);

export interface SessionEvents {
  onChoices(choices: Choices): void;
  onQuality(position: number): void;
  /** Playback has stopped, and why; null: it may go on. */
  onProblem(key: MessageKey | null): void;
}

/**
 * One viewing of one video: keeps token and state, and turns whatever goes wrong into one message. The CDN's
 * answer for the master playlist decides what is wrong; what an engine reports is only the reason to ask.
 */
export class Session {
  readonly #video: HTMLVideoElement;
  readonly #events: SessionEvents;
  readonly #embedder: Embedder;
  readonly #keeper: TokenKeeper;
  readonly #engine: Engine | null;
  readonly #master: string;
  #problem: MessageKey | null = null;
  #checking: Promise<void> | null = null;
  #checkedAtMs = performance.now();
  #recovered = false;
  #reloadedAtMs = -Infinity;
  #worst: Trouble | null = null;
  #last: Trouble | null = null;
  #stalled: ReturnType<typeof setTimeout> | undefined;
  #tries = 0;

  constructor(video: HTMLVideoElement, settings: PageSettings, events: SessionEvents) {
    const { videoId, embedder, token, expiresAtMs, nowMs } = settings;
    this.#video = video;
    this.#events = events;
    this.#master = fileAddress(location.href, videoId, 'master.m3u8');
    const ahead = nowMs - Date.now();
    this.#embedder = createEmbedder(window, { origin: embedder, videoId }, (fresh) => {
      void this.#keeper.offer(fresh);
    });
    this.#keeper = new TokenKeeper(token, expiresAtMs, {
      ask: (reason) => this.#embedder.askForToken(reason),
      verify: (offered) => askCdn(this.#master, offered),
      now: () => Date.now() + ahead,
      onRenewed: () => this.#tokenRenewed(),
      onExpired: () => this.#fail('token_expired'),
    });
    this.#engine = this.#createEngine();
  }

  /** Loads the playlists and watches the video. */
  open(): void {
    const video = this.#video;
    if (this.#engine === null) {
      this.#fail('unsupported');
      return;
    }
    this.#engine.load();
    video.addEventListener('play', () => {
      this.#engine?.start();
      // Whatever happened during a long pause is said at once.
      if (performance.now() - this.#checkedAtMs > checkEveryMs) void this.#check();
      this.#embedder.tell({ event: 'play' });
    });
    video.addEventListener('pause', () => this.#embedder.tell({ event: 'pause' }));
    video.addEventListener('ended', () => this.#embedder.tell({ event: 'ended' }));
    for (const event of ['waiting', 'seeking'] as const) video.addEventListener(event, () => this.#waits());
    for (const event of ['playing', 'pause', 'ended', 'timeupdate'] as const) {
      video.addEventListener(event, () => clearTimeout(this.#stalled));
    }
    setInterval(() => {
      if (!video.paused && this.#problem === null) void this.#check();
    }, checkEveryMs);
    setInterval(() => {
      const again = this.#problem !== null && passing.has(this.#problem) && this.#tries++ < maximumTries;
      if (again && document.visibilityState === 'visible') void this.retry();
    }, tryAgainMs);
    this.#embedder.tell({ event: 'ready' });
  }

  get engine(): Engine | null {
    return this.#engine;
  }

  /** Tries again what could not be done, and goes on at the same place when it works. */
  async retry(): Promise<void> {
    if (this.#engine === null) {
      location.reload();
      return;
    }
    if (this.#problem === 'token_expired' && !(await this.#keeper.renew())) return;
    const verdict = await askCdn(this.#master, this.#keeper.token);
    if (verdict !== 'ok') {
      if (typeof verdict === 'object' && verdict.code === 'token_expired') {
        if (await this.#keeper.renew()) await this.retry();
      } else this.#fail(verdict === 'unreachable' ? 'network_lost' : messageKeyOf(verdict.code));
      return;
    }
    const failed = this.#problem;
    this.#goOn();
    if (failed === 'playback_failed') this.#engine.recover();
    // A browser may want another click; then the play button is there for it.
    await this.#video.play().catch(() => undefined);
  }

  #createEngine(): Engine | null {
    const events: EngineEvents = {
      onChoices: (choices) => this.#events.onChoices(choices),
      onQuality: (position) => this.#events.onQuality(position),
      onTrouble: (trouble) => this.#onTrouble(trouble),
    };
    if (canUseHls()) return createHlsEngine(this.#video, this.#master, this.#keeper, events);
    if (!canPlayNatively(this.#video)) return null;
    return createNativeEngine(this.#video, this.#master, this.#keeper, events);
  }

  #waits(): void {
    clearTimeout(this.#stalled);
    if (this.#video.paused) return;
    this.#stalled = setTimeout(() => {
      const status = this.#last?.status ?? 0;
      this.#onTrouble({ kind: 'network', fatal: true, status, code: null });
    }, stalledMs);
  }

  #onTrouble(trouble: Trouble): void {
    if (this.#problem !== null) return;
    this.#last = trouble;
    if (trouble.kind === 'unsupported') this.#fail('unsupported');
    else if (trouble.kind === 'media' && trouble.fatal) this.#recover();
    else if (trouble.fatal || trouble.code !== null || trouble.status === 0) {
      this.#worst = this.#worst?.fatal === true ? this.#worst : trouble;
      void this.#check();
    }
  }

  #recover(): void {
    if (this.#recovered) {
      this.#fail('playback_failed');
      return;
    }
    this.#recovered = true;
    this.#engine?.recover();
  }

  /** Asks the CDN whether the video still plays, once for any number of reasons. */
  #check(): Promise<void> {
    this.#checking ??= this.#decide().finally(() => (this.#checking = null));
    return this.#checking;
  }

  async #decide(): Promise<void> {
    this.#checkedAtMs = performance.now();
    const verdict = await askCdn(this.#master, await this.#keeper.usable());
    const trouble = this.#worst;
    this.#worst = null;
    if (this.#problem !== null) return;
    if (verdict === 'unreachable') {
      // What is buffered plays on meanwhile.
      const starved = !this.#video.paused && this.#video.readyState < HTMLMediaElement.HAVE_FUTURE_DATA;
      if (trouble?.fatal === true || starved) this.#fail('network_lost');
    } else if (verdict !== 'ok') await this.#refused(verdict.code, trouble);
    else if (trouble?.fatal === true || trouble?.code === 'plan_limit_reached') this.#stoppedThough(trouble);
  }

  async #refused(code: string, trouble: Trouble | null): Promise<void> {
    if (code === 'token_expired') {
      if (await this.#keeper.renew()) this.#engine?.start();
      return;
    }
    const passing = code === 'state_unavailable' || code === 'service_unavailable';
    if (!passing || trouble?.fatal === true) this.#fail(messageKeyOf(code));
  }

  /** The plan has lost a quality: the master lists the others. */
  #reload(): void {
    const nowMs = performance.now();
    if (nowMs - this.#reloadedAtMs < reloadEveryMs) this.#fail('plan_limit_reached');
    else this.#engine?.reload();
    this.#reloadedAtMs = nowMs;
  }

  /** The video plays, says the CDN, yet the engine has stopped. */
  #stoppedThough({ code, status }: Trouble): void {
    if (code === 'plan_limit_reached') this.#reload();
    else if (code === 'token_expired') this.#engine?.start();
    else if (status === 404) this.#fail('segment_missing');
    else this.#fail(status === 0 ? 'network_lost' : 'service_unavailable');
  }

  #tokenRenewed(): void {
    this.#embedder.tell({ event: 'token_renewed' });
    this.#engine?.tokenRenewed();
    if (this.#problem === 'token_expired') this.#goOn();
  }

  #fail(key: MessageKey): void {
    const same = this.#problem === key;
    this.#problem = key;
    this.#engine?.stop();
    this.#video.pause();
    this.#events.onProblem(key);
    if (!same) this.#embedder.tell({ event: 'error', code: key });
    if (key === 'video_unavailable') void this.#explain();
  }

  /** The code is the same for a video that is held and one that is deleted; the page has words for each. */
  async #explain(): Promise<void> {
    const words = await askPage(location.href, this.#keeper.token);
    if (words !== null && this.#problem === 'video_unavailable') this.#events.onProblem(words);
  }

  #goOn(): void {
    this.#problem = null;
    this.#last = null;
    this.#tries = 0;
    this.#recovered = false;
    this.#events.onProblem(null);
    this.#engine?.start();
  }
}
