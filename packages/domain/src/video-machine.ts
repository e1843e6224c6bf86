import { type ErrorCode, type EventType, type Failure, type VideoStatus } from '@millrace/contract';

/** Everything that can move a video (contract "States and transitions"). */
export type VideoTrigger =
  | { type: 'complete_accepted' }
  | { type: 'complete_rejected'; failure: Failure }
  | { type: 'encoding_finished' }
  | { type: 'encoding_failed'; failure: Failure }
  | { type: 'hold_placed'; legal: boolean; reason: string | null }
  | { type: 'hold_lifted' }
  | { type: 'upload_cancelled' }
  | { type: 'upload_expired' }
  | { type: 'customer_delete' }
  | { type: 'team_removal'; legal: boolean; reason: string | null }
  | { type: 'team_retry' };

/** A hold that is active while the decision is made; for `hold_lifted`, those that remain. */
export interface ActiveHold {
  legal: boolean;
  reason: string | null;
}

/** What the machine needs to know of a video. */
export interface VideoSituation {
  status: VideoStatus;
  deleted: boolean;
  failureCode: Failure['code'] | null;
  holds: readonly ActiveHold[];
}

export type VideoDecision =
  | {
      kind: 'move';
      to: VideoStatus | 'deleted';
      event: EventType | null;
      /** `data.reason` of the event. */
      reason: string | null;
      /** `readyAt` is set when encoding ends, held or not, and never again. */
      setsReadyAt: boolean;
    }
  /** Nothing to do: the video stays as it is and nobody is told. */
  | { kind: 'stay' }
  | { kind: 'refused'; code: ErrorCode; message: string };

interface Row {
  from: readonly VideoStatus[];
  trigger: VideoTrigger['type'];
  /** Only while a hold is active (`held`) or none is (`unheld`). */
  when?: 'held' | 'unheld';
  to: VideoStatus | 'deleted' | 'stay';
  event?: EventType;
  setsReadyAt?: true;
}

const anyStatus: readonly VideoStatus[] = ['uploading', 'processing', 'ready', 'failed', 'held'];

/** The contract's table, one row a line; what is not here is refused. */
export const videoTransitions: readonly Row[] = [
  { from: ['uploading'], trigger: 'complete_accepted', to: 'processing' },
  { from: ['uploading'], trigger: 'complete_rejected', to: 'failed', event: 'video.failed' },
  {
    from: ['processing'],
    trigger: 'encoding_finished',
    when: 'unheld',
    to: 'ready',
    event: 'video.ready',
    setsReadyAt: true,
  },
  {
    from: ['processing'],
    trigger: 'encoding_finished',
    when: 'held',
    to: 'held',
    event: 'video.held',
    setsReadyAt: true,
  },
  { from: ['processing'], trigger: 'encoding_failed', to: 'failed', event: 'video.failed' },
  { from: ['ready'], trigger: 'hold_placed', to: 'held', event: 'video.held' },
  { from: ['uploading', 'processing', 'held'], trigger: 'hold_placed', to: 'stay' },
  { from: ['held'], trigger: 'hold_lifted', when: 'unheld', to: 'ready', event: 'video.ready' },
  { from: ['held'], trigger: 'hold_lifted', when: 'held', to: 'stay' },
  { from: ['uploading', 'processing', 'ready', 'failed'], trigger: 'hold_lifted', to: 'stay' },
  { from: ['uploading'], trigger: 'upload_cancelled', to: 'deleted' },
  { from: ['uploading'], trigger: 'upload_expired', to: 'deleted' },
  { from: anyStatus, trigger: 'customer_delete', to: 'deleted' },
  { from: anyStatus, trigger: 'team_removal', to: 'deleted', event: 'video.removed' },
  { from: ['failed'], trigger: 'team_retry', to: 'processing' },
];

/**
 * Decides one move of a video. Pure: the caller holds the video's row lock, carries the decision out and
 * inserts its outbox rows in the same transaction.
 *
 * Refusals: `not_found` for a deleted video, `invalid_video_state` for a move the table lacks.
 */
export function decideVideo(video: VideoSituation, trigger: VideoTrigger): VideoDecision {
  if (video.deleted) return { kind: 'refused', code: 'not_found', message: 'the video is deleted' };
  if (trigger.type === 'team_retry' && video.failureCode === 'plan_limit_reached') {
    return refuse('a video over its plan limit cannot be retried');
  }
  const held = video.holds.length > 0;
  const row = videoTransitions.find(
    (candidate) =>
      candidate.trigger === trigger.type &&
      candidate.from.includes(video.status) &&
      (candidate.when === undefined || (candidate.when === 'held') === held),
  );
  if (!row) return refuse(`a video that is ${video.status} does not allow this`);
  if (row.to === 'stay') return { kind: 'stay' };
  const { event, reason } = announcement(row.event ?? null, video, trigger);
  return { kind: 'move', to: row.to, event, reason, setsReadyAt: row.setsReadyAt ?? false };
}

const refuse = (message: string): VideoDecision => ({
  kind: 'refused',
  code: 'invalid_video_state',
  message,
});

/** `video.held` and `video.removed` are not sent for a legal matter (contract "Events"). */
function announcement(
  event: EventType | null,
  video: VideoSituation,
  trigger: VideoTrigger,
): { event: EventType | null; reason: string | null } {
  if (trigger.type === 'hold_placed' || trigger.type === 'team_removal') {
    return trigger.legal ? { event: null, reason: null } : { event, reason: trigger.reason };
  }
  if (event === 'video.held') {
    const told = video.holds.filter((hold) => !hold.legal);
    if (told.length === 0) return { event: null, reason: null };
    return { event, reason: told.find((hold) => hold.reason !== null)?.reason ?? null };
  }
  return { event, reason: null };
}
