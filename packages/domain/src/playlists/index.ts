export { captionsSegmentCount, renderCaptions } from './captions.ts';
export { splitAtLinks, splitVttAtPictures } from './links.ts';
export { renderMaster } from './master.ts';
export { namedTracks, renderIframes, renderMedia } from './media.ts';
