import { z } from 'zod';
import { account, planStatuses, timestamp, video } from '../resources.ts';
import { text } from '../text.ts';
import { defineRoutes, listOf, pageOf, pageQuery } from './route.ts';

/** Why the team acts; customers see it in the event unless the matter is legal. */
const reason = text({ max: 500 });

const jobStates = ['running', 'succeeded', 'failed', 'cancelled'] as const;

/** With its country code: the team reads it from the account's own words. */
const phoneNumber = text({ max: 32 });
const banned = z.object({ banned: z.boolean() });

const pauseOf = { accountId: z.string().max(64).optional(), class: z.enum(['standard', 'large']).optional() };
const encodePauses = listOf(
  z.object({
    scope: z.enum(['all', 'class', 'account']),
    subject: z.string().nullable(),
    reason: z.string().nullable(),
    pausedAt: timestamp,
    pausedBy: z.string().nullable(),
  }),
);

const team = { tag: 'Admin', auth: ['admin'] } as const;

export const adminRoutes = defineRoutes({
  holdVideo: {
    ...team,
    method: 'post',
    path: '/admin/videos/{videoId}/hold',
    summary: 'Hold a video, or change the reason of the hold',
    body: z.strictObject({ reason: reason.optional(), legal: z.boolean().default(false) }),
    response: { status: 200, body: video, description: 'The video as it is now.' },
    errors: ['invalid_video_state'],
  },
  liftVideo: {
    ...team,
    method: 'delete',
    path: '/admin/videos/{videoId}/hold',
    summary: 'Lift the team’s hold; answers 200 also when nothing was held',
    response: { status: 200, body: video, description: 'The video as it is now.' },
  },
  removeVideo: {
    ...team,
    method: 'delete',
    path: '/admin/videos/{videoId}',
    summary: 'Remove a video',
    query: z.object({
      reason: reason.optional(),
      legal: z
        .enum(['true', 'false'])
        .default('false')
        .transform((word) => word === 'true'),
    }),
    response: { status: 204, description: 'The video is gone.' },
  },
  retryEncodeJob: {
    ...team,
    method: 'post',
    path: '/admin/encode-jobs/{jobId}/retry',
    summary: 'Encode the failed video of a job again',
    response: { status: 200, body: video, description: 'The video, `processing` again.' },
    errors: ['invalid_video_state'],
  },
  banAccount: {
    ...team,
    method: 'post',
    path: '/admin/accounts/{accountId}/ban',
    summary: 'Ban an account, from its next request on',
    description: 'What is playing goes on playing, unless `holdVideos` holds the videos too.',
    body: z.strictObject({ reason: reason.optional(), holdVideos: z.boolean().default(false) }),
    response: { status: 200, body: account, description: 'The account.' },
  },
  unbanAccount: {
    ...team,
    method: 'delete',
    path: '/admin/accounts/{accountId}/ban',
    summary: 'Lift the ban of an account, and the holds that it placed',
    response: { status: 200, body: account, description: 'The account.' },
  },
  setAccountPlan: {
    ...team,
    method: 'post',
    path: '/admin/accounts/{accountId}/plan',
    summary: 'Put an account on a plan',
    body: z.strictObject({ planId: text({ max: 64 }), status: z.enum(planStatuses).default('active') }),
    response: { status: 200, body: account, description: 'The account.' },
  },
  eraseAccount: {
    ...team,
    method: 'post',
    path: '/admin/accounts/{accountId}/erase',
    summary: 'Erase an account, its people and its videos for good',
    description:
      'Nobody of it gets in from the next request on. Videos stop playing and their objects are deleted, those under a legal hold when it is lifted. Answers the same when it is repeated.',
    body: z.strictObject({ name: text({ max: 200 }), reason: reason.optional() }),
    response: {
      status: 202,
      body: z.object({ accountId: z.string(), erasedAt: timestamp, doneAt: timestamp.nullable() }),
      description: 'Since when it is erased, and when the last object was gone (null: some are left).',
    },
  },
  listReports: {
    ...team,
    method: 'get',
    path: '/admin/reports',
    summary: 'Reports of viewers, newest first',
    query: z.object(pageQuery),
    response: {
      status: 200,
      body: pageOf(
        z.object({
          id: z.string(),
          videoId: z.string(),
          accountId: z.string(),
          reason: z.string(),
          detail: z.string().nullable(),
          createdAt: timestamp,
        }),
      ),
      description: 'One page.',
    },
  },
  listEncodeJobs: {
    ...team,
    method: 'get',
    path: '/admin/encode-jobs',
    summary: 'Encode jobs, newest first',
    query: z.object({ ...pageQuery, state: z.enum(jobStates).optional() }),
    response: {
      status: 200,
      body: pageOf(
        z.object({
          id: z.string(),
          videoId: z.string(),
          accountId: z.string(),
          state: z.enum(jobStates),
          remaining: z.int(),
          createdAt: timestamp,
          finishedAt: timestamp.nullable(),
        }),
      ),
      description: 'One page.',
    },
  },
  listAudit: {
    ...team,
    method: 'get',
    path: '/admin/audit',
    summary: 'What the team did, newest first',
    query: z.object({ ...pageQuery, subject: z.string().max(64).optional() }),
    response: {
      status: 200,
      body: pageOf(
        z.object({
          id: z.string(),
          actor: z.string(),
          action: z.string(),
          subject: z.string(),
          details: z.record(z.string(), z.unknown()),
          createdAt: timestamp,
        }),
      ),
      description: 'One page.',
    },
  },
  getEncodePauses: {
    ...team,
    method: 'get',
    path: '/admin/encoding/pause',
    summary: 'What is held back from being encoded',
    response: { status: 200, body: encodePauses, description: 'Every pause.' },
  },
  pauseEncoding: {
    ...team,
    method: 'post',
    path: '/admin/encoding/pause',
    summary: 'Take no new encodes: of an account, of a class of workers, or at all; what runs goes on',
    body: z.strictObject({ ...pauseOf, reason: reason.optional() }),
    response: { status: 200, body: encodePauses, description: 'Every pause, this one among them.' },
    errors: ['not_found'],
  },
  resumeEncoding: {
    ...team,
    method: 'delete',
    path: '/admin/encoding/pause',
    summary: 'Lift a pause, named as it was made',
    query: z.object(pauseOf),
    response: { status: 200, body: encodePauses, description: 'The pauses that are left.' },
  },
  banPhone: {
    ...team,
    method: 'post',
    path: '/admin/bans/phone',
    summary: 'Ban a phone number: no account may verify it, and those that have are refused',
    body: z.strictObject({ phone: phoneNumber, reason: reason.optional() }),
    response: { status: 200, body: banned, description: 'It is banned.' },
    errors: ['invalid_phone', 'sms_not_configured'],
  },
  unbanPhone: {
    ...team,
    method: 'delete',
    path: '/admin/bans/phone',
    summary: 'Lift the ban of a phone number; it is in the body, since addresses are logged',
    body: z.strictObject({ phone: phoneNumber }),
    response: { status: 200, body: banned, description: 'It is not banned.' },
    errors: ['invalid_phone', 'sms_not_configured'],
  },
  banDevice: {
    ...team,
    method: 'post',
    path: '/admin/bans/device',
    summary: 'Ban a device, by the id that the log of a sign-in names',
    body: z.strictObject({ deviceId: text({ max: 64 }), reason: reason.optional() }),
    response: { status: 200, body: banned, description: 'It is banned.' },
  },
  unbanDevice: {
    ...team,
    method: 'delete',
    path: '/admin/bans/device',
    summary: 'Lift the ban of a device',
    body: z.strictObject({ deviceId: text({ max: 64 }) }),
    response: { status: 200, body: banned, description: 'It is not banned.' },
  },
});
