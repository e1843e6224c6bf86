export * from './ids.ts';
export { createRequestIds } from './request-ids.ts';
export {
  type KeySet,
  KeySetError,
  keySetText,
  parseKeySet,
  sharedSecretsOf,
  sharedSecretText,
} from './keys.ts';
export { isOriginOf, originOfReferer } from './origin.ts';
export { isExpired, type PlaybackClaims, signPlaybackToken, verifyPlaybackToken } from './playback-token.ts';
export { signText, verifyText } from './signed-text.ts';
export * from './video-machine.ts';
export {
  namedTracks,
  captionsSegmentCount,
  renderCaptions,
  renderIframes,
  renderMaster,
  renderMedia,
  splitAtLinks,
  splitVttAtPictures,
} from './playlists/index.ts';
export { decideTrouble, type TaskClass, type TaskTries, type TaskTrouble } from './encode-retry.ts';
export { type UsagePeriod, usagePeriodAt } from './usage-period.ts';
export { signUploadToken, type UploadClaims, verifyUploadToken } from './upload-token.ts';
export { titleOf } from './titles.ts';
export { decideUpload, type UploadDecision, type UploadState, type UploadTrigger } from './upload-machine.ts';
export {
  areSameParts,
  checkJoined,
  checkParts,
  type HeldPart,
  largestUploadBytes,
  type NamedPart,
  partLayout,
} from './upload-parts.ts';
export { hashOf, matchesHash, newApiKey, newSessionId, parseApiKey, sessionExpiry } from './credentials.ts';
export { type CursorScope, decodeCursor, encodeCursor, type Position } from './cursor.ts';
export { decideDomain, type DomainState, readRecord, type RecordSeen } from './domain-machine.ts';
export * from './encoding/index.ts';
export { demoTokenSeconds, playbackTokenSeconds, previewTokenSeconds } from './token-lifetime.ts';
export {
  decideDelivery,
  type DeliveryDecision,
  type DeliveryStatus,
  decideRedelivery,
  type EndedTry,
} from './delivery-machine.ts';
export { signWebhook, webhookKey } from './webhook-signature.ts';
export {
  newWebhookSecret,
  openWebhookSecret,
  SealedSecretError,
  sealWebhookSecret,
} from './webhook-secret.ts';
export { breakerPause } from './endpoint-breaker.ts';
export { canonicalLanguage, CaptionsError, languageName, normaliseCaptions } from './captions/index.ts';
export { joinSegments } from './watched-segments.ts';
