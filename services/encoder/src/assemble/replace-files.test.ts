import { describe, expect, it } from '@jest/globals';
import { type DeliveryIndex } from '@millrace/contract';
import { replacedPrefixes, withFiles } from './replace-files.ts';

const track = (...objects: string[]): DeliveryIndex['audio'][number] => ({
  ...{
    timescale: 48_000,
    init: [0, 0, 1],
    segments: [],
    peakBandwidth: 1,
    averageBandwidth: 1,
    codec: 'mp4a',
  },
  ...{ objects, name: 'Audio', language: null, channels: 2 },
});
const jpeg = (key: string) => ({ key, bytes: 10, contentType: 'image/jpeg' });
const index: DeliveryIndex = {
  ...{ v: 1, videoId: 'vid_1', durationMs: 1_000 },
  renditions: [
    {
      ...track('v/video/0.mp4', 'v/more/1.mp4'),
      quality: '360p',
      width: 640,
      height: 360,
      frameRate: '25/1',
    },
  ],
  audio: [track('v/audio/0.mp4')],
  files: { 'poster.jpg': jpeg('v/images/poster.jpg'), 'storyboard-0.jpg': jpeg('v/board/0.jpg') },
};
const before = { key: 'v/assembled/index.json', index };
const after = (files: { name: string; key: string }[]) => ({
  key: 'v/new/index.json',
  index: withFiles(
    index,
    files.map(({ name, key }) => ({ name, ...jpeg(key) })),
  ),
});

describe('withFiles', () => {
  it('puts a file in the place of that of its name and leaves all else', () => {
    expect(after([{ name: 'poster.jpg', key: 'v/new/poster.jpg' }]).index).toEqual({
      ...index,
      files: { 'poster.jpg': jpeg('v/new/poster.jpg'), 'storyboard-0.jpg': jpeg('v/board/0.jpg') },
    });
  });

  it('adds one where there was none', () => {
    const without = { ...index, files: {} };
    expect(withFiles(without, [{ name: 'poster.jpg', ...jpeg('v/new/poster.jpg') }]).files).toEqual({
      'poster.jpg': jpeg('v/new/poster.jpg'),
    });
  });
});

describe('replacedPrefixes', () => {
  it('are those of the old index and of what it alone needs', () => {
    const poster = { name: 'poster.jpg', key: 'v/new/poster.jpg' };
    expect(replacedPrefixes(before, after([poster]))).toEqual(['v/assembled/', 'v/images/']);
  });

  it('are never those that the new index still needs for something else', () => {
    const shared = { ...index, files: { ...index.files, 'poster.jpg': jpeg('v/audio/poster.jpg') } };
    const poster = { name: 'poster.jpg', key: 'v/new/poster.jpg' };
    expect(replacedPrefixes({ key: 'v/video/index.json', index: shared }, after([poster]))).toEqual([]);
  });
});
