import { createHash } from 'node:crypto';
import {
  type CaptionsPlaybackState,
  type DeliveryIndex,
  type DeliveryTrack,
  type Quality,
  withinQuality,
} from '@millrace/contract';
import {
  captionsSegmentCount,
  namedTracks,
  renderCaptions,
  renderIframes,
  renderMaster,
  renderMedia,
  splitAtLinks,
} from '@millrace/domain';
import { type Target } from '../http/target.ts';
import { type Block } from './blocks.ts';

/** Text with links, cut at the places where each answer's token goes. */
export interface LinkedText {
  readonly pieces: readonly string[];
  /** Length of all pieces as UTF-8. */
  readonly bytes: number;
  readonly contentType: string;
}

/** A block with what its answer needs to say. */
export interface ServedBlock extends Block {
  readonly contentType: string;
  /** Strong validator: these bytes of this object, whatever else of the video changes. */
  readonly etag: string;
}

type CaptionsStates = readonly CaptionsPlaybackState[];

const playlistType = 'application/vnd.apple.mpegurl';

export const linkedText = (pieces: readonly string[], contentType = playlistType): LinkedText => ({
  pieces,
  contentType,
  bytes: pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0),
});

/** One finished encode as the CDN serves it: playlists rendered once, and where every byte lies. */
export class Delivery {
  readonly #index: DeliveryIndex;
  readonly #tracks: ReadonlyMap<string, DeliveryTrack>;
  readonly #texts = new Map<string, LinkedText>();
  /** Master playlists with captions, by their highest rendition. */
  readonly #captioned = new WeakMap<CaptionsStates, Map<string, LinkedText>>();
  /** What names the objects in validators, by their keys. */
  readonly #marks = new Map<string, string>();

  constructor(index: DeliveryIndex) {
    this.#index = index;
    this.#tracks = new Map(namedTracks(index).map(({ name, track }) => [name, track]));
  }

  /**
   * The playlist asked for, or null when this encode has no such track.
   * @param captions as the video's state has them
   */
  playlist(target: Target, maximum: Quality, captions: CaptionsStates = []): LinkedText | null {
    const track = this.#tracks.get(target.track);
    switch (target.kind) {
      case 'master':
        return this.#master(maximum, captions);
      case 'captions':
        return captionsIn(captions, target) ? this.text('captions', () => renderCaptions(this.#index)) : null;
      case 'media':
        return track ? this.text(`media/${target.track}`, () => renderMedia(this.#index, track)) : null;
      case 'iframes':
        return track ? this.text(`iframes/${target.track}`, () => renderIframes(this.#index, track)) : null;
      default:
        return null;
    }
  }

  /**
   * Kept by the state's own list of captions, which is another one after each change: what is out of date goes
   * with it.
   */
  #master(maximum: Quality, captions: CaptionsStates): LinkedText {
    const highest = this.#highest(maximum);
    const render = (): string => renderMaster(this.#index, maximum, captions);
    if (captions.length === 0) return this.text(`master/${highest}`, render);
    const masters = this.#captioned.get(captions) ?? new Map<string, LinkedText>();
    const master = masters.get(highest) ?? linkedText(splitAtLinks(render()));
    this.#captioned.set(captions, masters.set(highest, master));
    return master;
  }

  /** Where the init segment, media segment or file asked for lies, or null when this encode has none such. */
  block(target: Target): ServedBlock | null {
    if (target.kind === 'file') return this.#file(target.file);
    const track = this.#tracks.get(target.track);
    const place = target.kind === 'init' ? track?.init : track?.segments[target.n];
    const key = place && track?.objects[place[0]];
    if (key === undefined) return null;
    const name = target.kind === 'init' ? 'init' : target.n;
    return {
      key,
      offset: place?.[1] ?? 0,
      bytes: place?.[2] ?? 0,
      contentType: target.quality === null ? 'audio/mp4' : 'video/mp4',
      etag: this.#etag(key, `${target.track}-${name}`),
    };
  }

  /** The file of the captions asked for, or null where there is none. */
  captionsBlock(target: Target, captions: CaptionsStates): ServedBlock | null {
    const found = captionsIn(captions, target);
    if (found === undefined || target.n >= captionsSegmentCount(this.#index)) return null;
    const { key, bytes } = found;
    return { key, offset: 0, bytes, contentType: 'text/vtt', etag: `"${markOf(key)}"` };
  }

  /** Duration of a segment in milliseconds, as metered. */
  segmentMs(target: Target): number {
    const track = this.#tracks.get(target.track);
    const ticks = track?.segments[target.n]?.[3] ?? 0;
    return track === undefined ? 0 : (ticks * 1000) / track.timescale;
  }

  /** A text kept under `name`, made and cut at its links the first time. */
  text(name: string, make: () => string): LinkedText {
    const known = this.#texts.get(name);
    if (known !== undefined) return known;
    return this.keepText(name, linkedText(splitAtLinks(make())));
  }

  keptText(name: string): LinkedText | undefined {
    return this.#texts.get(name);
  }

  keepText(name: string, text: LinkedText): LinkedText {
    this.#texts.set(name, text);
    return text;
  }

  #file(name: string): ServedBlock | null {
    const file = Object.hasOwn(this.#index.files, name) ? this.#index.files[name] : undefined;
    if (file === undefined) return null;
    const { key, bytes, contentType } = file;
    return { key, offset: 0, bytes, contentType, etag: this.#etag(key, name) };
  }

  /** Each key is hashed once. */
  #etag(key: string, name: string): string {
    const mark = this.#marks.get(key) ?? markOf(key);
    this.#marks.set(key, mark);
    return `"${mark}-${name}"`;
  }

  /** Masters differ only by the highest rendition that the plan lets through. */
  #highest(maximum: Quality): string {
    return this.#index.renditions.findLast(({ quality }) => withinQuality(quality, maximum))?.quality ?? '';
  }
}

const captionsIn = (captions: CaptionsStates, { track }: Target): CaptionsPlaybackState | undefined =>
  captions.find(({ language }) => language === track);

/** Names an object in validators without telling its key. */
const markOf = (key: string): string => createHash('sha256').update(key).digest('base64url').slice(0, 16);
