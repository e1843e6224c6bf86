import { createHash } from 'node:crypto';
import { type DeliveryIndex, type DeliveryTrack, type Quality, withinQuality } from '@millrace/contract';
import { namedTracks, renderIframes, renderMaster, renderMedia, splitAtLinks } from '@millrace/domain';
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
  /** Strong validator: these bytes of this encode. */
  readonly etag: string;
}

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
  /** Names the encode in validators without telling its object keys. */
  readonly #mark: string;

  constructor(indexKey: string, index: DeliveryIndex) {
    this.#index = index;
    this.#tracks = new Map(namedTracks(index).map(({ name, track }) => [name, track]));
    this.#mark = createHash('sha256').update(indexKey).digest('base64url').slice(0, 16);
  }

  /** The playlist asked for, or null when this encode has no such track. */
  playlist(target: Target, maximum: Quality): LinkedText | null {
    const track = this.#tracks.get(target.track);
    switch (target.kind) {
      case 'master':
        return this.text(`master/${this.#highest(maximum)}`, () => renderMaster(this.#index, maximum));
      case 'media':
        return track ? this.text(`media/${target.track}`, () => renderMedia(this.#index, track)) : null;
      case 'iframes':
        return track ? this.text(`iframes/${target.track}`, () => renderIframes(this.#index, track)) : null;
      default:
        return null;
    }
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
      etag: `"${this.#mark}-${target.track}-${name}"`,
    };
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
    return { key, offset: 0, bytes, contentType, etag: `"${this.#mark}-${name}"` };
  }

  /** Masters differ only by the highest rendition that the plan lets through. */
  #highest(maximum: Quality): string {
    return this.#index.renditions.findLast(({ quality }) => withinQuality(quality, maximum))?.quality ?? '';
  }
}
