import { z } from 'zod';
import { qualities } from './qualities.ts';

/** Resources of the contract, as answered. Inputs live with their routes. */

export const timestamp = z.iso.datetime({ precision: 3 });
const id = (prefix: string) => z.string().regex(new RegExp(`^${prefix}_[A-Za-z0-9]+$`));

export const videoStatuses = ['uploading', 'processing', 'ready', 'failed', 'held'] as const;
export const failureCodes = [
  'unsupported_codec',
  'invalid_file',
  'no_video_track',
  'plan_limit_reached',
  'encoding_failed',
] as const;
export type VideoStatus = (typeof videoStatuses)[number];
export type FailureCode = (typeof failureCodes)[number];

export const failure = z.object({ code: z.enum(failureCodes), message: z.string() });
export type Failure = z.infer<typeof failure>;

export const video = z
  .object({
    id: id('vid'),
    projectId: id('prj'),
    title: z.string(),
    status: z.enum(videoStatuses),
    durationSeconds: z.number().nullable(),
    qualities: z.array(z.enum(qualities)),
    sizeBytes: z.int(),
    failure: failure.nullable(),
    createdAt: timestamp,
    updatedAt: timestamp,
    readyAt: timestamp.nullable(),
    accessMode: z.literal('protected'),
  })
  .meta({ id: 'Video' });
export type Video = z.infer<typeof video>;

/** Captions of a video in one language. */
export const captions = z
  .object({
    language: z.string().meta({ description: 'BCP 47, in its canonical spelling.' }),
    name: z.string().meta({ description: 'What players show: the name of the language in itself.' }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Captions' });
export type Captions = z.infer<typeof captions>;

export const eventTypes = [
  'video.ready',
  'video.failed',
  'video.held',
  'video.removed',
  'webhook.test',
] as const;
export type EventType = (typeof eventTypes)[number];

/** The body of a webhook about a video (contract "Events"). */
export const videoEvent = z.object({
  id: id('evt'),
  type: z.enum(eventTypes),
  createdAt: timestamp,
  projectId: id('prj'),
  data: z.object({ video, reason: z.string().optional() }),
});
export type VideoEvent = z.infer<typeof videoEvent>;

/** The body of `webhook.test`. */
export const testEvent = z.object({
  id: id('evt'),
  type: z.literal('webhook.test'),
  createdAt: timestamp,
  projectId: id('prj'),
  data: z.object({ test: z.literal(true) }),
});

/** Any body that is sent to an endpoint. */
export const webhookEvent = z.union([testEvent, videoEvent]);
export type WebhookEvent = z.infer<typeof webhookEvent>;

export const webhookEndpoint = z
  .object({
    id: id('whe'),
    url: z.string(),
    events: z.array(z.enum(eventTypes)),
    createdAt: timestamp,
    /** Only when the endpoint is created or the secret is rotated. */
    signingSecret: z.string().optional(),
  })
  .meta({ id: 'WebhookEndpoint' });
export type WebhookEndpoint = z.infer<typeof webhookEndpoint>;

export const webhookDelivery = z
  .object({
    id: id('del'),
    eventId: id('evt'),
    eventType: z.enum(eventTypes),
    createdAt: timestamp,
    status: z.enum(['pending', 'delivered', 'failed']),
    attempts: z.int(),
    lastStatus: z.int().nullable(),
    lastAttemptAt: timestamp.nullable(),
    nextAttemptAt: timestamp.nullable(),
    lastError: z.string().nullable(),
    redeliveryOf: z.string().nullable(),
  })
  .meta({ id: 'WebhookDelivery' });
export type WebhookDelivery = z.infer<typeof webhookDelivery>;

/** How the player of a project's videos looks, where the plan has white label. */
export const branding = z.object({
  hideLogo: z.boolean(),
  primaryColor: z.string().nullable(),
  logoUrl: z.string().nullable(),
});
export type Branding = z.infer<typeof branding>;

export const project = z
  .object({
    id: id('prj'),
    name: z.string(),
    createdAt: timestamp,
    whiteLabel: z.boolean(),
    branding,
  })
  .meta({ id: 'Project' });
export type Project = z.infer<typeof project>;

export const apiKeyScopes = ['full', 'playback'] as const;
export type ApiKeyScope = (typeof apiKeyScopes)[number];

export const apiKey = z
  .object({
    id: id('key'),
    name: z.string(),
    scope: z.enum(apiKeyScopes),
    /** What may be shown of the value. */
    prefix: z.string(),
    createdAt: timestamp,
    lastUsedAt: timestamp.nullable(),
    expiresAt: timestamp.nullable(),
    revokedAt: timestamp.nullable(),
  })
  .meta({ id: 'ApiKey' });
export type ApiKey = z.infer<typeof apiKey>;

export const domainStatuses = ['pending', 'verified', 'lapsed'] as const;
export type DomainStatus = (typeof domainStatuses)[number];

export const domain = z
  .object({
    id: id('dom'),
    hostname: z.string(),
    status: z.enum(domainStatuses),
    verification: z.object({ type: z.literal('TXT'), name: z.string(), value: z.string() }),
    createdAt: timestamp,
    verifiedAt: timestamp.nullable(),
    /** The last look-up: when, and every TXT value seen at the record's name. */
    lastCheck: z.object({ at: timestamp, found: z.array(z.string()) }).nullable(),
  })
  .meta({ id: 'Domain' });
export type Domain = z.infer<typeof domain>;

export const uploadContentTypes = ['video/mp4', 'video/quicktime', 'video/webm', 'video/x-matroska'] as const;

export const uploadToken = z
  .object({
    token: z.string(),
    expiresAt: timestamp,
    projectId: id('prj'),
    domain: z.string(),
    maxSizeBytes: z.int(),
    contentTypes: z.array(z.enum(uploadContentTypes)),
    title: z.string().optional(),
  })
  .meta({ id: 'UploadToken' });
export type UploadTokenResource = z.infer<typeof uploadToken>;

/** One part as the store holds it. */
export const uploadedPart = z.object({ partNumber: z.int(), etag: z.string(), sizeBytes: z.int() });

export const upload = z
  .object({
    id: id('upl'),
    video,
    partSizeBytes: z.int(),
    parts: z.array(z.object({ partNumber: z.int(), url: z.url() })),
    expiresAt: timestamp,
  })
  .meta({ id: 'Upload' });
export type Upload = z.infer<typeof upload>;

/** What can still be done with an upload: fresh part URLs, and the parts that need not be sent again. */
export const resumedUpload = upload
  .extend({ uploadedParts: z.array(uploadedPart) })
  .meta({ id: 'ResumedUpload' });
export type ResumedUpload = z.infer<typeof resumedUpload>;

export const playbackToken = z
  .object({
    token: z.string(),
    expiresAt: timestamp,
    embedUrl: z.url(),
    thumbnailUrl: z.url(),
    /** Only on plans with white label. */
    playlistUrl: z.url().optional(),
  })
  .meta({ id: 'PlaybackToken' });
export type PlaybackTokenResource = z.infer<typeof playbackToken>;

/** Plays only while the dashboard frames it; the dashboard appends the token to `embedUrl`. */
export const previewToken = z
  .object({ token: z.string(), expiresAt: timestamp, embedUrl: z.url() })
  .meta({ id: 'PreviewToken' });
export type PreviewTokenResource = z.infer<typeof previewToken>;

/** What an encode saw and did; `details` grows key by key as the encode goes on. */
export const ingestReport = z
  .object({
    videoId: id('vid'),
    state: z.enum(['running', 'succeeded', 'failed', 'cancelled']),
    startedAt: timestamp,
    finishedAt: timestamp.nullable(),
    details: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'IngestReport' });
export type IngestReport = z.infer<typeof ingestReport>;

export const planStatuses = ['active', 'pilot', 'past_due', 'canceled'] as const;
export type PlanStatus = (typeof planStatuses)[number];

export const account = z
  .object({
    id: id('acc'),
    name: z.string(),
    planId: z.string(),
    planStatus: z.enum(planStatuses),
    createdAt: timestamp,
    phoneVerified: z.boolean(),
    phoneVerificationRequired: z.boolean(),
  })
  .meta({ id: 'Account' });
export type Account = z.infer<typeof account>;

export const userRoles = ['owner', 'member'] as const;
export type UserRole = (typeof userRoles)[number];

export const user = z
  .object({ id: id('usr'), role: z.enum(userRoles), email: z.string(), displayName: z.string() })
  .meta({ id: 'User' });
export type User = z.infer<typeof user>;

/** A code was sent to a number. */
export const phoneChallenge = z
  .object({
    challengeId: id('phc'),
    /** Its middle digits masked. */
    phone: z.string(),
    expiresAt: timestamp,
    testCode: z.string().optional().meta({ description: 'In the test environment only.' }),
  })
  .meta({ id: 'PhoneChallenge' });
export type PhoneChallenge = z.infer<typeof phoneChallenge>;

/** null means no limit. */
const limits = z
  .object({
    storedSeconds: z.int().nullable(),
    uploadSecondsPerPeriod: z.int().nullable(),
    watchedMinutesPerPeriod: z.int().nullable(),
    verifiedDomains: z.int().nullable(),
    projects: z.int().nullable(),
    maxQuality: z.enum(qualities),
    whiteLabel: z.boolean(),
  })
  .meta({ id: 'Limits' });

export const accountPlan = z
  .object({
    plan: z.object({ id: z.string(), name: z.string() }),
    status: z.enum(planStatuses),
    currentPeriod: z.object({ start: timestamp, end: timestamp }),
    limits,
    usage: z.object({
      storedSeconds: z.int(),
      watchedMinutes: z.int(),
      verifiedDomains: z.int(),
      overageMinutes: z.int(),
    }),
  })
  .meta({ id: 'AccountPlan' });
export type AccountPlan = z.infer<typeof accountPlan>;

export const planResource = z
  .object({
    id: z.string(),
    name: z.string(),
    price: z.object({
      /** In the currency's smallest unit. */
      amount: z.int().min(1),
      currency: z.string(),
      interval: z.string(),
    }),
    limits,
  })
  .meta({ id: 'Plan' });
export type PlanResource = z.infer<typeof planResource>;

export const whitelistEntry = z
  .object({ planId: z.string(), email: z.string(), createdAt: timestamp })
  .meta({ id: 'WhitelistEntry' });
export type WhitelistEntry = z.infer<typeof whitelistEntry>;

export const report = z
  .object({ id: id('rep'), videoId: id('vid'), reason: z.string() })
  .meta({ id: 'Report' });
export type Report = z.infer<typeof report>;

export const demoPlayback = z
  .object({ cdnUrl: z.url(), videoId: id('vid'), token: z.string(), expiresAt: timestamp })
  .meta({ id: 'DemoPlayback' });
export type DemoPlayback = z.infer<typeof demoPlayback>;
