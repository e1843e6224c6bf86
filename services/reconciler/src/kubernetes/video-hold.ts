import { type RecordedHold } from '@millrace/store';
import { z } from 'zod';
import { type KubernetesObject } from './api.ts';
import { decideStatus, type Finding, type StatusStep } from './conditions.ts';
import { type Asks } from './not-applied.ts';

/** Keeps an object that is to be released until its hold is lifted. */
const finalizer = 'millrace.dev/release';

/** Why the record is not as a `VideoHold` asks; of a video that is deleted or has failed, nothing plays. */
const reasonsNotHeld = [
  'InvalidSpec',
  'VideoNotFound',
  'VideoDeleted',
  'VideoFailed',
  'EditNotApplied',
] as const;
type ReasonNotHeld = (typeof reasonsNotHeld)[number];

/** By what a `VideoHold` says whether it is applied. */
export const asksOfVideoHolds: Asks = { condition: 'Held', reasons: reasonsNotHeld, finalizer };

const videoHoldSpec = z.object({
  videoId: z.string(),
  reason: z.string().nullable().default(null),
  legal: z.boolean().default(false),
  onDelete: z.enum(['Retain', 'Release']).default('Retain'),
});

export type VideoHoldSpec = z.output<typeof videoHoldSpec>;

/** A `VideoHold` and what the record knows of it. */
export interface SeenVideoHold {
  object: KubernetesObject;
  /** Null when it is not one that can be read. */
  spec: VideoHoldSpec | null;
  record: RecordedHold;
  /** It is gone already: this is the last that was heard of it. */
  gone?: { /** Another of its name is there, and is about the same video. */ takenOver: boolean };
}

export type VideoHoldStep =
  | { type: 'finalizers'; finalizers: readonly string[] }
  | { type: 'place'; spec: VideoHoldSpec }
  | { type: 'lift'; videoId: string }
  | { type: 'forget' }
  | StatusStep;

/** What to do, in this order; `again` when the outcome must be looked at anew. */
export interface VideoHoldDecision {
  steps: readonly VideoHoldStep[];
  again: boolean;
}

/** The spec of an object, or null when it is not one that this version can read. */
export const readSpec = (object: KubernetesObject): VideoHoldSpec | null =>
  videoHoldSpec.safeParse(object.spec).data ?? null;

/** Whether deleting an object lifts its hold. */
export const releases = (object: KubernetesObject): boolean => readSpec(object)?.onDelete === 'Release';

/**
 * The same of one that is not there any more, though no watch told of its end. Before it had its finalizer anybody could
 * delete it; once it had, only force takes it away, or a cluster that was set back to a time before it: then its hold
 * stays, as for any doubt.
 */
export const releasesUnseen = (object: KubernetesObject): boolean =>
  releases(object) && !object.metadata.finalizers.includes(finalizer);

/**
 * What a `VideoHold` asks for. It is one more source of holds: it places its own and, deleted with
 * `onDelete: Release`, lifts its own. Such an object has a finalizer before its hold is placed, so that no delete can
 * pass unseen; one with `Retain` has none, so that nothing waits for an operator that was uninstalled.
 */
export function decideVideoHold(seen: SeenVideoHold, now: Date): VideoHoldDecision | null {
  const { object, spec } = seen;
  if (seen.gone !== undefined) return decideGone(seen, seen.gone);
  if (object.metadata.deletionTimestamp !== undefined) return decideDeletion(seen);
  if (spec === null) return told(seen, [unreadable], now);
  const wanted = finalizersOf(object, spec.onDelete === 'Release');
  if (wanted !== null) return { steps: [{ type: 'finalizers', finalizers: wanted }], again: true };
  if (canBeHeld(seen.record) && !isAsAsked(seen.record, spec)) {
    return { steps: [{ type: 'place', spec }], again: true };
  }
  return told(seen, findingsOf(seen.record, spec), now);
}

function decideDeletion({ object, spec, record }: SeenVideoHold): VideoHoldDecision | null {
  const finalizers = finalizersOf(object, false);
  if (finalizers === null) return null;
  const lifts = spec?.onDelete === 'Release' && record.hold !== null;
  return {
    steps: [
      ...(lifts ? [{ type: 'lift', videoId: spec.videoId } as const] : []),
      { type: 'finalizers', finalizers },
    ],
    again: false,
  };
}

/**
 * Somebody may delete an object right after an edit to `Release`, before it has its finalizer. Its last word is what a
 * watch said then. One that took its name and its hold over keeps the hold.
 */
function decideGone(
  { spec, record }: SeenVideoHold,
  { takenOver }: NonNullable<SeenVideoHold['gone']>,
): VideoHoldDecision {
  const lifts = spec?.onDelete === 'Release' && record.hold !== null && !takenOver;
  return {
    steps: [...(lifts ? [{ type: 'lift', videoId: spec.videoId } as const] : []), { type: 'forget' }],
    again: true,
  };
}

/** The finalizers that it ought to have, or null when it has them. */
function finalizersOf({ metadata: { finalizers } }: KubernetesObject, ours: boolean): string[] | null {
  if (finalizers.includes(finalizer) === ours) return null;
  return ours ? [...finalizers, finalizer] : finalizers.filter((name) => name !== finalizer);
}

const canBeHeld = ({ video, hold }: RecordedHold): boolean =>
  video !== null && !video.deleted && (video.status !== 'failed' || hold !== null);

const isAsAsked = ({ hold }: RecordedHold, { reason, legal }: VideoHoldSpec): boolean =>
  hold !== null && hold.reason === reason && hold.legal === legal;

const notHeldFor = (reason: ReasonNotHeld, message: string): Finding => ({
  ...{ type: 'Held', status: 'False', reason, message },
});
const unreadable = notHeldFor(
  'InvalidSpec',
  'The spec is not one that this version of the operator can read.',
);

function findingsOf(record: RecordedHold, spec: VideoHoldSpec): Finding[] {
  const { video, hold } = record;
  if (hold === null) return [notHeld(video)];
  const { effectiveAt } = hold;
  return [
    isAsAsked(record, spec)
      ? { type: 'Held', status: 'True', reason: 'Held', message: 'The hold is in the record.' }
      : {
          ...notHeldFor(
            'EditNotApplied',
            'The hold is as it was: the video was deleted before the edit. Delete with Release to lift it.',
          ),
          status: 'True',
        },
    effectiveAt === null
      ? {
          ...{ type: 'Effective', status: 'False', reason: 'Spreading' },
          message: 'Some process of the CDN has not confirmed yet that it knows the hold.',
        }
      : {
          ...{ type: 'Effective', status: 'True', reason: 'Confirmed' },
          message: 'Every process of the CDN refuses the video.',
        },
  ];
}

function notHeld(video: RecordedHold['video']): Finding {
  if (video === null) return notHeldFor('VideoNotFound', 'There is no such video.');
  if (video.deleted) return notHeldFor('VideoDeleted', 'The video is deleted; it does not play.');
  return notHeldFor('VideoFailed', 'The video failed; there is nothing to hold.');
}

function told(
  { object, record }: SeenVideoHold,
  findings: readonly Finding[],
  now: Date,
): VideoHoldDecision | null {
  const { hold } = record;
  const fields = { heldSince: hold?.placedAt ?? null, effectiveSince: hold?.effectiveAt ?? null };
  const step = decideStatus(object, { findings, fields, now });
  return step === null ? null : { steps: [step], again: false };
}
