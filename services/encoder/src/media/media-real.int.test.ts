import { describe, expect } from '@jest/globals';
import { type MediaCase, type ReadyCase } from '../testing/media-cases.ts';
import { describeCases } from '../testing/media-suite.ts';

const real = (
  file: string,
  why: string,
  [w, h]: readonly [number, number],
  expected: Pick<ReadyCase, 'qualities' | 'duration_s' | 'sounding_s_min'>,
): MediaCase => ({
  ...{ file: `real/${file}`, family: 'real', why },
  expect: [
    { outcome: 'ready', display: { w, h }, duration_tol_s: 0.2, has_audio: true, pixels: [], ...expected },
  ],
});
const rates: Record<string, string> = {
  'real/canon-mjpeg.avi': '30/1',
  'real/sony-avchd-interlaced.mts': '25/1',
  'real/quicktime-mpeg4-10fps.mov': '10/1',
  'real/old-phone-amr.3gp': '15/1',
};

describe('media: real cameras', () => {
  describeCases(
    [
      real('phone-rotated.mp4', 'a display matrix of -90 degrees', [720, 1280], {
        qualities: ['360p', '720p'],
        duration_s: 1.3,
      }),
      real('canon-mjpeg.avi', 'Motion JPEG 4:2:2, full range', [640, 480], {
        qualities: ['360p'],
        duration_s: 2.6,
      }),
      real('sony-avchd-interlaced.mts', 'fields, and no reference at the start', [1920, 1080], {
        qualities: ['360p', '720p', '1080p'],
        duration_s: 0.5,
      }),
      real('quicktime-mpeg4-10fps.mov', 'ten pictures a second', [640, 480], {
        qualities: ['360p'],
        duration_s: 85.5,
      }),
      real('old-phone-amr.3gp', 'smaller than every rung, five frames of sound to a packet', [176, 144], {
        qualities: ['360p'],
        duration_s: 4.9,
        sounding_s_min: 3.9,
      }),
    ],
    ({ file }, { index, notes }) => {
      const rate = rates[file];
      if (rate !== undefined) expect(index?.renditions[0]?.frameRate).toBe(rate);
      expect(notes.includes('deinterlaced')).toBe(file.endsWith('.mts'));
      expect(notes.includes('rotated')).toBe(file.endsWith('phone-rotated.mp4'));
    },
  );
});
