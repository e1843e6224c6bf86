const hour = 3_600;
const day = 86_400;

/** How long a playback token lives unless its maker says: the video's length and an hour, at most a day. */
export const playbackTokenSeconds = (durationMs: number): number =>
  Math.min(day, Math.max(hour, Math.ceil(durationMs / 1000) + hour));

/** How long a preview token lives; the dashboard asks for another one. */
export const previewTokenSeconds = hour;

/** How long a demo token lives. */
export const demoTokenSeconds = 600;
