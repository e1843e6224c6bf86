export {
  createDatabase,
  type Database,
  type DatabaseOptions,
  DatabaseUnavailableError,
  isDataException,
  isUniqueViolation,
  type Queryable,
  type Transaction,
} from './db.ts';
export { migrate, type Migrated } from './migrate.ts';
export { createHoldCommands, type HoldCommands, type HoldReference, type HoldSource } from './holds.ts';
export { accountStateMessage, addToOutbox, type OutboxMessage, videoStateMessage } from './outbox.ts';
export {
  type PlaybackGrant,
  publishAccountState,
  readPlaybackGrant,
  readPlaybackState,
} from './playback-state.ts';
export {
  abandonedCompletions,
  beginCompletion,
  type CompletionOutcome,
  type CompletionStart,
  finishCompletion,
  resolveCompleting,
  resumeCompletion,
} from './upload-completion.ts';
export {
  assertUploadRoom,
  cancelUpload,
  expireUploads,
  extendUpload,
  findUpload,
  findUploadOfToken,
  insertUpload,
  type NewUpload,
  type UploadRow,
} from './uploads.ts';
export {
  captionsKey,
  type CaptionsPlace,
  captionsResource,
  listCaptions,
  openCaptionsPrefix,
  removeCaptions,
  setCaptions,
} from './captions.ts';
export * from './videos.ts';
export { findKeyHolder, type KeyHolder, keyHoldersOfVideos } from './key-holders.ts';
export * from './video-moves.ts';
export { acquireLease, assertEpoch, LeaseLostError, releaseLease } from './leases.ts';
export { listen, type Listener } from './listener.ts';
export {
  addHeartbeats,
  deleteOutboxRows,
  nextOutboxRows,
  outboxBacklog,
  type OutboxRow,
  refuseOutboxRow,
  type RelayEpoch,
} from './outbox-relay.ts';
export {
  doomedPrefixes,
  type DoomedPrefix,
  expireRateWindows,
  expireRows,
  forgetPrefix,
  markPurged,
  markPurgedVideos,
  mayPurge,
  type PurgeCursor,
  purgeViews,
  unknownUploads,
} from './purge.ts';
export {
  attemptOf,
  type ClaimedTask,
  claimTask,
  type HeartbeatAnswer,
  heartbeatTask,
  releaseTask,
} from './encode-claims.ts';
export {
  createEncodeJob,
  type EncodeJob,
  findEncodeJob,
  findOutputs,
  repairJobs,
  type StoredOutput,
} from './encode-jobs.ts';
export { encodeBacklog } from './encode-backlog.ts';
export { encodeQueueAges } from './encode-queue-age.ts';
export { encodeTime, type EncodeTime } from './encode-time.ts';
export { republishQueued } from './encode-permits.ts';
export { type FinishOutcome, finishJob, finishPlan, finishTask, replanVideo } from './encode-results.ts';
export { failTask, reapExpiredLeases } from './encode-troubles.ts';
export { finishPoster } from './poster-results.ts';
export { abandonAttempt, type Attempt, newPrefix, openAttemptPrefix } from './object-prefixes.ts';
export { type LockedUsage, lockUsage } from './usage.ts';
export {
  accountResource,
  type AccountRow,
  banAccount,
  createAccount,
  findAccount,
  findUser,
  setPlan,
  userResource,
  type UserRow,
} from './accounts.ts';
export {
  apiKeyResource,
  type ApiKeyRow,
  createApiKey,
  listApiKeys,
  revokeApiKey,
  touchApiKey,
} from './api-keys.ts';
export { type AuditEntry, writeAudit } from './audit.ts';
export {
  addDomain,
  domainsToCheck,
  domainResource,
  type DomainRow,
  findDomain,
  isVerifiedDomain,
  listDomains,
  noteDomainCheck,
  recordDomainCheck,
  removeDomain,
  verificationRecord,
} from './domains.ts';
export {
  claimIdempotencyKey,
  type IdempotencyClaim,
  type IdempotencyScope,
  keepIdempotentResult,
  releaseIdempotencyKey,
} from './idempotency.ts';
export { type Plan, planOfAccount } from './plans.ts';
export {
  createProject,
  deleteProject,
  findAnyProject,
  findProject,
  findProjectHolder,
  type ProjectHolder,
  listProjects,
  projectResource,
  type ProjectRow,
  updateProject,
} from './projects.ts';
export {
  createSession,
  deleteSession,
  findSessionHolder,
  type SessionHolder,
  touchSession,
} from './sessions.ts';
export { banDevice, banPhone, isDeviceBanned, unbanDevice, unbanPhone } from './bans.ts';
export { type Identity, IdentityRefusedError, userOfIdentity } from './identities.ts';
export { dropChallenge, openChallenge, reserveChallenge, tryPhoneCode } from './phone-challenges.ts';
export { accountUsage } from './account-usage.ts';
export {
  createEndpoint,
  deleteEndpoint,
  endpointResource,
  failOrphanedDeliveries,
  findEndpoint,
  listEndpoints,
  replaceSecret,
} from './webhook-endpoints.ts';
export {
  deliveryResource,
  fanOutEvent,
  listDeliveries,
  overdueFanOuts,
  queueTestEvent,
  redeliver,
} from './webhook-deliveries.ts';
export { purgeWebhookLog } from './webhook-purge.ts';
export { eraseVideos } from './erasure-videos.ts';
export { eraseAccount } from './erasure.ts';
export { resealSecret, secretsOfOtherKeys } from './sealed-secrets.ts';
export {
  copyHoldAgain,
  holdCopy,
  type HoldCopy,
  holdsToCopy,
  type HoldToCopy,
  isStrayCopy,
  markHoldCopied,
  recordTime,
  type StandingHold,
  standingHolds,
} from './hold-copies.ts';
export { restoreHold } from './hold-restore.ts';
export { allowSweeps, declareRestored, holdsRestored, raiseMark, recordState } from './record-state.ts';
export {
  attemptsUnderWay,
  claimDeliveries,
  type ClaimedDelivery,
  releaseClaims,
  takeOverClaims,
  webhookBacklog,
  type WebhookWorker,
} from './webhook-claims.ts';
export { type AttemptResult, finishAttempts } from './webhook-results.ts';
export { type BreakerChange } from './webhook-breakers.ts';
export { createRateWindows, type RateWindows } from './rate-windows.ts';
export { isOrdered, joinWhitelist, keepBillingEvent, listPaidPlans, listWhitelist } from './billing.ts';
export { insertReport } from './reports.ts';
export { correctUsageDrift, type UsageDrift } from './usage-drift.ts';
export { countWatchedTime, reconcileWatchLimits, type WatchedTime } from './watched-time.ts';
export {
  type AuditRow,
  type EncodeJobSummary,
  listAudit,
  listEncodeJobs,
  listReports,
  type ReportRow,
} from './team-lists.ts';
export { reconcileBanHolds } from './ban-holds.ts';
export {
  confirmPlaybackState,
  type EffectiveHold,
  forgetCdnProcesses,
  markSpreadingHolds,
  noteCdnProcess,
  settleSpreadingHolds,
} from './hold-spread.ts';
export { readKubernetesHold, type RecordedHold } from './kubernetes-holds.ts';
export {
  announcePlans,
  applyPlan,
  type PlanLimits,
  type PlanOwner,
  readPlanLimits,
  type RecordedPlan,
} from './plan-limits.ts';
export {
  countEncodePauses,
  type EncodePauseScope,
  listEncodePauses,
  pauseEncoding,
  resumeEncoding,
} from './encode-pauses.ts';
export { databaseSettings, directUrl, openDatabase } from './settings.ts';
