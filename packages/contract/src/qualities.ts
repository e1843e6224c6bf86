/** The qualities of the contract ("Video", `qualities`), rising. */
export const qualities = ['360p', '720p', '1080p', '1440p', '2160p'] as const;
export type Quality = (typeof qualities)[number];

/** The number in a quality's name: the short side of its 16:9 box, in pixels. */
export const qualityHeight = (quality: Quality): number => Number.parseInt(quality, 10);

/** True when `quality` is not above `maximum`. */
export const withinQuality = (quality: Quality, maximum: Quality): boolean =>
  qualities.indexOf(quality) <= qualities.indexOf(maximum);
