/** Something that keeps the video from going on, as an engine saw it. */
export interface Trouble {
  kind: 'network' | 'media' | 'unsupported';
  /** The engine has stopped because of it. */
  fatal: boolean;
  /** HTTP status; 0 without an answer. */
  status: number;
  /** `X-Svc-Error` of the answer. */
  code: string | null;
}

export interface Track {
  /** What names it in a menu. */
  label: string;
  /** BCP 47, when known. */
  language: string | null;
}

/** What can be chosen, each by its position. */
export interface Choices {
  /** `720p`, …; by rising quality. */
  qualities: readonly string[];
  audio: readonly Track[];
  captions: readonly Track[];
}

export interface EngineEvents {
  onChoices(choices: Choices): void;
  /** The quality that plays now, by position. */
  onQuality(position: number): void;
  onTrouble(trouble: Trouble): void;
}

/** What turns the master playlist into a playing `<video>`: hls.js, or the browser itself. */
export interface Engine {
  /** Loads the playlists; nothing of the media until `start`. */
  load(): void;
  /** Loads media from here on; again after `stop`. */
  start(): void;
  /** Loads nothing more; what is buffered stays. */
  stop(): void;
  /** Reads the master anew, since the choices have changed, and goes on at the same place. */
  reload(): void;
  /** Tries once to go on after the browser could not decode. */
  recover(): void;
  /** Null: automatic. */
  setQuality(position: number | null): void;
  setAudio(position: number): void;
  /** Null: none. */
  setCaptions(position: number | null): void;
  /** The token has changed. */
  tokenRenewed(): void;
}
