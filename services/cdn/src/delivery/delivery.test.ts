import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { type CaptionsPlaybackState, type Quality } from '@millrace/contract';
import { renderCaptions, renderIframes, renderMaster, renderMedia } from '@millrace/domain';
import { parseTarget, type Target } from '../http/target.ts';
import { sample, sampleIndex } from '../testing/sample.ts';
import { Delivery, linkedText, type LinkedText } from './delivery.ts';

const target = (path: string): Target => {
  const parsed = parseTarget(`/v/${sample.videoId}/${path}`);
  if (parsed === null) throw new Error(`no target: ${path}`);
  return parsed;
};
const mark = (key: string): string => createHash('sha256').update(key).digest('base64url').slice(0, 16);
const delivery = new Delivery(sampleIndex);
const captions = [
  { language: 'de', name: 'Deutsch', key: 'captions/de.vtt', bytes: 99 },
  { language: 'pt-BR', name: 'português', key: 'captions/pt.vtt', bytes: 11 },
] as const satisfies readonly CaptionsPlaybackState[];
const [rendition] = sampleIndex.renditions;
const [sound] = sampleIndex.audio;
if (rendition === undefined || sound === undefined) throw new Error('the sample has no tracks');
const text = (linked: LinkedText | null): string | null => linked?.pieces.join('') ?? null;
type Given = readonly CaptionsPlaybackState[];
const playlistOf = (path: string, maximum: Quality = '2160p', given: Given = captions): string | null =>
  text(delivery.playlist(target(path), maximum, given));

describe('a playlist', () => {
  it('is that of the track', () => {
    expect(playlistOf('360p/index.m3u8')).toBe(renderMedia(sampleIndex, rendition));
    expect(playlistOf('audio/index.m3u8')).toBe(renderMedia(sampleIndex, sound));
    expect(playlistOf('360p/iframes.m3u8')).toBe(renderIframes(sampleIndex, rendition));
    expect(playlistOf('captions/de/index.m3u8')).toBe(renderCaptions(sampleIndex));
  });

  it('is none of a track that there is not, nor of what is no playlist', () => {
    for (const path of ['2160p/index.m3u8', '2160p/iframes.m3u8', 'audio-2/index.m3u8']) {
      expect(playlistOf(path)).toBeNull();
    }
    for (const path of ['captions/fr/index.m3u8', '360p/init.mp4', '360p/seg-0.m4s', 'poster.jpg']) {
      expect(playlistOf(path)).toBeNull();
    }
    expect(delivery.playlist(target('captions/de/index.m3u8'), '2160p')).toBeNull();
    expect(delivery.playlist(target('poster.jpg'), '2160p')).toBeNull();
  });

  it.each<[Quality]>([['360p'], ['720p'], ['1080p'], ['2160p']])(
    'of all has what a plan up to %s allows',
    (maximum) => {
      expect(playlistOf('master.m3u8', maximum)).toBe(renderMaster(sampleIndex, maximum, captions));
      expect(playlistOf('master.m3u8', maximum, [])).toBe(renderMaster(sampleIndex, maximum, []));
      expect(text(delivery.playlist(target('master.m3u8'), maximum))).toBe(
        renderMaster(sampleIndex, maximum, []),
      );
    },
  );

  it('of all is empty where the plan allows less than there is', () => {
    const only = new Delivery({
      ...sampleIndex,
      renditions: [{ ...rendition, quality: '1080p' }],
    });
    expect(text(only.playlist(target('master.m3u8'), '720p'))).not.toContain('1080p');
    expect(text(only.playlist(target('master.m3u8'), '1080p'))).toContain('1080p/index.m3u8');
  });

  it('is cut once, and again only where it is another', () => {
    const made = new Delivery(sampleIndex);
    const of = (path: string, maximum: Quality, given: Given) => made.playlist(target(path), maximum, given);
    for (const given of [captions, []]) {
      const master = of('master.m3u8', '720p', given);
      expect(of('master.m3u8', '720p', given)).toBe(master);
      expect(of('master.m3u8', '360p', given)).not.toBe(master);
      expect(of('master.m3u8', '720p', given)).toBe(master);
    }
    expect(of('master.m3u8', '2160p', [])).toBe(of('master.m3u8', '1080p', []));
    expect(of('master.m3u8', '720p', [...captions])).not.toBe(of('master.m3u8', '720p', captions));
    const kinds = [
      '360p/index.m3u8',
      '360p/iframes.m3u8',
      '720p/iframes.m3u8',
      '720p/index.m3u8',
      'audio/index.m3u8',
      'captions/de/index.m3u8',
    ];
    const lists = kinds.map((path) => of(path, '720p', captions));
    expect(new Set(lists).size).toBe(kinds.length);
    expect(kinds.map((path) => of(path, '720p', captions))).toEqual(lists);
    for (const [n, path] of kinds.entries()) expect(of(path, '720p', captions)).toBe(lists[n]);
    expect(of('captions/pt-BR/index.m3u8', '720p', captions)).toBe(lists.at(-1));
  });

  it('tells its type and its length in bytes, apart from the tokens', () => {
    const playlist = delivery.playlist(target('360p/index.m3u8'), '720p');
    expect(playlist?.contentType).toBe('application/vnd.apple.mpegurl');
    expect(playlist?.pieces.length).toBeGreaterThan(1);
    expect(playlist?.bytes).toBe(Buffer.byteLength(renderMedia(sampleIndex, rendition)));
    expect(linkedText(['ü', 'a'], 'text/vtt')).toEqual({
      pieces: ['ü', 'a'],
      bytes: 3,
      contentType: 'text/vtt',
    });
  });
});

describe('a block', () => {
  const key = 'encodes/one/360p.mp4';
  it.each([
    ['360p/init.mp4', { key, offset: 0, bytes: 800, contentType: 'video/mp4', name: '360p-init' }],
    ['360p/seg-0.m4s', { key, offset: 800, bytes: 200_000, contentType: 'video/mp4', name: '360p-0' }],
    ['360p/seg-3.m4s', { key, offset: 600_800, bytes: 200_000, contentType: 'video/mp4', name: '360p-3' }],
    [
      'audio/seg-1.m4s',
      {
        key: 'encodes/one/audio.mp4',
        offset: 200_800,
        bytes: 200_000,
        contentType: 'audio/mp4',
        name: 'audio-1',
      },
    ],
    [
      'poster.jpg',
      {
        key: 'encodes/one/poster.jpg',
        offset: 0,
        bytes: 5_000,
        contentType: 'image/jpeg',
        name: 'poster.jpg',
      },
    ],
  ])('of %s', (path, { name, ...block }) => {
    expect(delivery.block(target(path))).toEqual({ ...block, etag: `"${mark(block.key)}-${name}"` });
  });

  it('keeps its validator when another poster comes, whose own is new [VID-212]', () => {
    const poster = { key: 'encodes/two/poster.jpg', bytes: 4_000, contentType: 'image/jpeg' };
    const after = new Delivery({ ...sampleIndex, files: { 'poster.jpg': poster } });
    for (const path of ['360p/init.mp4', '360p/seg-0.m4s', 'audio/seg-1.m4s']) {
      expect(after.block(target(path))).toEqual(delivery.block(target(path)));
    }
    const etags = [after, delivery].map((each) => each.block(target('poster.jpg'))?.etag);
    expect(new Set(etags).size).toBe(2);
  });

  it.each(['360p/seg-4.m4s', '2160p/init.mp4', '2160p/seg-0.m4s', 'audio-2/seg-0.m4s', 'storyboard-1.jpg'])(
    'is none of %s',
    (path) => {
      expect(delivery.block(target(path))).toBeNull();
    },
  );

  it('is none of an object’s own names, nor of a segment in no object', () => {
    expect(delivery.block({ ...target('poster.jpg'), file: 'constructor' })).toBeNull();
    const lost = new Delivery({
      ...sampleIndex,
      renditions: [{ ...rendition, objects: [] }],
    });
    expect(lost.block(target('360p/seg-0.m4s'))).toBeNull();
  });

  it('of captions is their file, in as many segments as the video is long', () => {
    expect(delivery.captionsBlock(target('captions/pt-BR/seg-0.vtt'), captions)).toEqual({
      ...{
        key: 'captions/pt.vtt',
        offset: 0,
        bytes: 11,
        contentType: 'text/vtt',
        etag: `"${mark('captions/pt.vtt')}"`,
      },
    });
    expect(delivery.captionsBlock(target('captions/fr/seg-0.vtt'), captions)).toBeNull();
    expect(delivery.captionsBlock(target('captions/de/seg-1.vtt'), captions)).toBeNull();
    const long = new Delivery({ ...sampleIndex, durationMs: 7 * 3_600_000 });
    expect(long.captionsBlock(target('captions/de/seg-1.vtt'), captions)).not.toBeNull();
    expect(long.captionsBlock(target('captions/de/seg-2.vtt'), captions)).toBeNull();
  });
});

describe('a segment', () => {
  it('lasts as long as its ticks say, and nothing where there is none', () => {
    expect(delivery.segmentMs(target('720p/seg-3.m4s'))).toBe(6_006);
    expect(delivery.segmentMs(target('audio/seg-0.m4s'))).toBe(6_006);
    expect(delivery.segmentMs(target('720p/seg-4.m4s'))).toBe(0);
    expect(delivery.segmentMs(target('2160p/seg-0.m4s'))).toBe(0);
  });
});

describe('a text', () => {
  it('is kept by its name', () => {
    const made = new Delivery(sampleIndex);
    expect(made.keptText('a')).toBeUndefined();
    const kept = made.text('a', () => '#EXTM3U\nseg-0.m4s\n');
    expect(made.text('a', () => 'another')).toBe(kept);
    expect(made.keptText('a')).toBe(kept);
    expect(made.keepText('a', linkedText(['x']))).toBe(made.keptText('a'));
    expect(text(made.keptText('a') ?? null)).toBe('x');
  });
});
