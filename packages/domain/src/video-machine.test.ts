import { type Failure, type VideoStatus } from '@millrace/contract';
import { describe, expect, it } from '@jest/globals';
import { type ActiveHold, decideVideo, type VideoDecision, type VideoTrigger } from './video-machine.ts';

const failure: Failure = { code: 'invalid_file', message: 'not a video' };
const teamHold: ActiveHold = { legal: false, reason: 'copyright' };
const legalHold: ActiveHold = { legal: true, reason: 'court order' };

const triggers: Record<string, VideoTrigger> = {
  accepted: { type: 'complete_accepted' },
  rejected: { type: 'complete_rejected', failure },
  finished: { type: 'encoding_finished' },
  encodingFailed: { type: 'encoding_failed', failure },
  hold: { type: 'hold_placed', legal: false, reason: 'spam' },
  legalHold: { type: 'hold_placed', legal: true, reason: 'court order' },
  lift: { type: 'hold_lifted' },
  cancel: { type: 'upload_cancelled' },
  expire: { type: 'upload_expired' },
  delete: { type: 'customer_delete' },
  remove: { type: 'team_removal', legal: false, reason: 'spam' },
  legalRemove: { type: 'team_removal', legal: true, reason: 'court order' },
  retry: { type: 'team_retry' },
};

const move = (
  to: VideoStatus | 'deleted',
  event: string | null = null,
  more: { reason?: string; setsReadyAt?: boolean } = {},
): VideoDecision =>
  ({
    kind: 'move',
    to,
    event,
    reason: more.reason ?? null,
    setsReadyAt: more.setsReadyAt ?? false,
  }) as VideoDecision;
const stay: VideoDecision = { kind: 'stay' };

/** The contract's tables of moves and of holds, row by row; every pair that is not here is refused. */
const rows: [from: VideoStatus, trigger: string, holds: ActiveHold[], expected: VideoDecision][] = [
  ['uploading', 'accepted', [], move('processing')],
  ['uploading', 'rejected', [], move('failed', 'video.failed')],
  ['uploading', 'hold', [teamHold], stay],
  ['uploading', 'legalHold', [legalHold], stay],
  ['uploading', 'lift', [], stay],
  ['uploading', 'cancel', [], move('deleted')],
  ['uploading', 'expire', [], move('deleted')],
  ['uploading', 'delete', [], move('deleted')],
  ['uploading', 'remove', [], move('deleted', 'video.removed', { reason: 'spam' })],
  ['uploading', 'legalRemove', [], move('deleted')],
  ['processing', 'finished', [], move('ready', 'video.ready', { setsReadyAt: true })],
  [
    'processing',
    'finished',
    [teamHold],
    move('held', 'video.held', { reason: 'copyright', setsReadyAt: true }),
  ],
  ['processing', 'finished', [legalHold], move('held', null, { setsReadyAt: true })],
  [
    'processing',
    'finished',
    [legalHold, teamHold],
    move('held', 'video.held', { reason: 'copyright', setsReadyAt: true }),
  ],
  ['processing', 'encodingFailed', [], move('failed', 'video.failed')],
  ['processing', 'hold', [teamHold], stay],
  ['processing', 'legalHold', [legalHold], stay],
  ['processing', 'lift', [], stay],
  ['processing', 'delete', [], move('deleted')],
  ['processing', 'remove', [], move('deleted', 'video.removed', { reason: 'spam' })],
  ['processing', 'legalRemove', [], move('deleted')],
  ['ready', 'hold', [teamHold], move('held', 'video.held', { reason: 'spam' })],
  ['ready', 'legalHold', [legalHold], move('held')],
  ['ready', 'lift', [], stay],
  ['ready', 'delete', [], move('deleted')],
  ['ready', 'remove', [], move('deleted', 'video.removed', { reason: 'spam' })],
  ['ready', 'legalRemove', [], move('deleted')],
  ['failed', 'lift', [], stay],
  ['failed', 'delete', [], move('deleted')],
  ['failed', 'remove', [], move('deleted', 'video.removed', { reason: 'spam' })],
  ['failed', 'legalRemove', [], move('deleted')],
  ['failed', 'retry', [], move('processing')],
  ['held', 'hold', [teamHold, teamHold], stay],
  ['held', 'legalHold', [teamHold, legalHold], stay],
  ['held', 'lift', [teamHold], stay],
  ['held', 'lift', [], move('ready', 'video.ready')],
  ['held', 'delete', [teamHold], move('deleted')],
  ['held', 'remove', [teamHold], move('deleted', 'video.removed', { reason: 'spam' })],
  ['held', 'legalRemove', [teamHold], move('deleted')],
];

const named = (name: string): VideoTrigger => {
  const trigger = triggers[name];
  if (!trigger) throw new Error(`no trigger ${name}`);
  return trigger;
};

describe('video state machine', () => {
  it.each(rows)('%s on %s with holds %j [VID-104, VID-105, VID-118]', (status, trigger, holds, expected) => {
    expect(decideVideo({ status, deleted: false, failureCode: null, holds }, named(trigger))).toEqual(
      expected,
    );
  });

  const statuses: VideoStatus[] = ['uploading', 'processing', 'ready', 'failed', 'held'];
  const refused = statuses.flatMap((status) =>
    Object.keys(triggers)
      .filter((trigger) => !rows.some(([from, name]) => from === status && name === trigger))
      .map((trigger): [VideoStatus, string] => [status, trigger]),
  );
  it.each(refused)('%s refuses %s [VID-115]', (status, trigger) => {
    expect(
      decideVideo({ status, deleted: false, failureCode: null, holds: [] }, named(trigger)),
    ).toMatchObject({
      kind: 'refused',
      code: 'invalid_video_state',
      message: `a video that is ${status} does not allow this`,
    });
  });

  it.each(Object.keys(triggers))('a deleted video answers %s with not_found', (trigger) => {
    expect(
      decideVideo({ status: 'ready', deleted: true, failureCode: null, holds: [] }, named(trigger)),
    ).toMatchObject({
      kind: 'refused',
      code: 'not_found',
      message: 'the video is deleted',
    });
  });

  it('never retries a video over its plan limit, which can be deleted all the same [VID-114]', () => {
    const video = { status: 'failed', deleted: false, failureCode: 'plan_limit_reached', holds: [] } as const;
    expect(decideVideo(video, { type: 'team_retry' })).toEqual({
      kind: 'refused',
      code: 'invalid_video_state',
      message: 'a video over its plan limit cannot be retried',
    });
    expect(decideVideo(video, { type: 'customer_delete' })).toEqual(move('deleted'));
  });

  it.each<[string, (string | null)[], string | null]>([
    ['that of the first hold which has one', [null, 'copyright', 'spam'], 'copyright'],
    ['none where no hold has one', [null, null], null],
  ])('announces a hold that outlasted encoding with a reason: %s', (_what, reasons, expected) => {
    const holds = reasons.map((reason) => ({ legal: false, reason }));
    const video = { status: 'processing', deleted: false, failureCode: null, holds } as const;
    expect(decideVideo(video, { type: 'encoding_finished' })).toMatchObject({
      event: 'video.held',
      reason: expected,
    });
  });
});
