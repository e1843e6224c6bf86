import { type DeliveryIndex } from '@millrace/contract';

/**
 * Longest segment of captions, in milliseconds. WebVTT's times are put on a clock of 33 bits, 26.5 hours
 * (RFC 8216 §3.5): a player takes a cue more than half of that from its segment's begin for an earlier or later one.
 */
const longestMs = 6 * 3_600_000;

/** How many segments the captions of a video are played in. */
export const captionsSegmentCount = ({ durationMs }: DeliveryIndex): number =>
  Math.ceil(durationMs / longestMs);

/**
 * The media playlist of captions. Every segment is the same file, which has the cues of all of them; all but very
 * long videos have one. A playlist of subtitles may have a target duration of its own when it is `VOD` (§6.2.4).
 */
export function renderCaptions(index: DeliveryIndex): string {
  const { durationMs } = index;
  const lines = [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    `#EXT-X-TARGETDURATION:${Math.max(1, Math.round(Math.min(durationMs, longestMs) / 1000))}`,
    '#EXT-X-MEDIA-SEQUENCE:0',
    '#EXT-X-PLAYLIST-TYPE:VOD',
  ];
  for (let n = 0; n < captionsSegmentCount(index); n++) {
    const own = Math.min(longestMs, durationMs - n * longestMs);
    lines.push(`#EXTINF:${(own / 1000).toFixed(6)},`, `seg-${n}.vtt`);
  }
  return `${lines.join('\n')}\n#EXT-X-ENDLIST\n`;
}
