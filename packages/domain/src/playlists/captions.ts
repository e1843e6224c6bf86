import { type DeliveryIndex } from '@millrace/contract';

/** File name of the one segment of captions, below their language's folder. */
const segmentName = 'seg-0.vtt';

/**
 * The media playlist of captions: one file for the whole video. A playlist of subtitles may have a target
 * duration of its own when it is `VOD` (RFC 8216 §6.2.4).
 */
export function renderCaptions({ durationMs }: DeliveryIndex): string {
  const lines = [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    `#EXT-X-TARGETDURATION:${Math.max(1, Math.round(durationMs / 1000))}`,
    '#EXT-X-MEDIA-SEQUENCE:0',
    '#EXT-X-PLAYLIST-TYPE:VOD',
    `#EXTINF:${(durationMs / 1000).toFixed(6)},`,
    segmentName,
    '#EXT-X-ENDLIST\n',
  ];
  return lines.join('\n');
}
