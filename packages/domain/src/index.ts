export * from './ids.ts';
export { type KeySet, KeySetError, parseKeySet } from './keys.ts';
export { isOriginOf, originOfReferer } from './origin.ts';
export { isExpired, type PlaybackClaims, signPlaybackToken, verifyPlaybackToken } from './playback-token.ts';
export { signText, verifyText } from './signed-text.ts';
export * from './video-machine.ts';
export {
  namedTracks,
  renderIframes,
  renderMaster,
  renderMedia,
  splitAtLinks,
  splitVttAtPictures,
} from './playlists/index.ts';
