import { describe, expect, it } from '@jest/globals';
import { type RecordedHold } from '@millrace/store';
import { type KubernetesObject } from './api.ts';
import { decideVideoHold, readSpec, releasesUnseen, type VideoHoldDecision } from './video-hold.ts';

const now = new Date('2030-01-02T03:04:05.678Z');
const placedAt = new Date('2030-01-01T00:00:00.000Z');
const ours = 'millrace.dev/release';

interface Situation {
  spec?: object;
  metadata?: Partial<KubernetesObject['metadata']>;
  status?: unknown;
  video?: RecordedHold['video'];
  hold?: Partial<NonNullable<RecordedHold['hold']>> | null;
  gone?: { takenOver: boolean };
}

function decide({
  spec = {},
  metadata = {},
  status,
  video,
  hold = null,
  gone,
}: Situation): VideoHoldDecision | null {
  const object: KubernetesObject = {
    metadata: {
      ...{ name: 'h', namespace: 'default', uid: 'u', generation: 3, resourceVersion: '7' },
      ...{ creationTimestamp: '2030-01-01T00:00:00Z', finalizers: [] },
      ...metadata,
    },
    spec: { videoId: 'vid_1', ...spec },
    status,
  };
  const record: RecordedHold = {
    video: video === undefined ? { status: 'ready', deleted: false } : video,
    hold: hold && { reason: null, legal: false, placedAt, effectiveAt: null, ...hold },
  };
  const seen = { object, spec: readSpec(object), record };
  return decideVideoHold(gone === undefined ? seen : { ...seen, gone }, now);
}
const types = (decision: VideoHoldDecision | null): string[] => decision?.steps.map(({ type }) => type) ?? [];
/** The conditions that are written, as `type=status/reason`. */
function told(decision: VideoHoldDecision | null): string[] {
  const step = decision?.steps[0];
  if (step?.type !== 'status') throw new Error('no status is written');
  return (step.status as { conditions: Record<string, string>[] }).conditions.map(
    ({ type, status, reason }) => `${type}=${status}/${reason}`,
  );
}

describe('a VideoHold that is there', () => {
  it('places its hold, and looks again', () => {
    const decision = decide({});
    expect(types(decision)).toEqual(['place']);
    expect(decision?.again).toBe(true);
  });

  it.each([
    ['its reason', { reason: 'new' }, { reason: 'old' }],
    ['whether it is a legal matter', { legal: true }, {}],
  ])('updates %s', (_, spec, hold) => {
    expect(types(decide({ spec, hold }))).toEqual(['place']);
  });

  it('has a finalizer before anything else when it is to be released, and none when it is not', () => {
    const released = decide({ spec: { onDelete: 'Release' }, metadata: { finalizers: ['other/one'] } });
    expect(released).toEqual({
      steps: [{ type: 'finalizers', finalizers: ['other/one', ours] }],
      again: true,
    });
    const retained = decide({ metadata: { finalizers: [ours, 'other/one'] } });
    expect(retained).toEqual({ steps: [{ type: 'finalizers', finalizers: ['other/one'] }], again: true });
  });

  it('says since when it is held, and since when by every process of the CDN', () => {
    const on = decide({ hold: {} });
    expect(told(on)).toEqual(['Held=True/Held', 'Effective=False/Spreading']);
    const everywhere = decide({ hold: { effectiveAt: new Date('2030-01-01T00:00:02.900Z') } });
    expect(told(everywhere)).toEqual(['Held=True/Held', 'Effective=True/Confirmed']);
    expect(everywhere?.steps[0]).toMatchObject({
      status: {
        ...{
          observedGeneration: 3,
          heldSince: '2030-01-01T00:00:00Z',
          effectiveSince: '2030-01-01T00:00:02Z',
        },
        conditions: [{ lastTransitionTime: '2030-01-02T03:04:05Z' }, {}],
      },
    });
  });

  it('writes nothing that is there already, and tells only what is news', () => {
    const first = decide({ hold: {} });
    const step = first?.steps[0];
    const status = step?.type === 'status' ? step.status : null;
    expect(decide({ hold: {}, status })).toBeNull();
    const later = decide({ hold: { effectiveAt: placedAt }, status })?.steps[0];
    expect(later).toMatchObject({ news: [{ type: 'Effective', status: 'True' }] });
  });

  it('keeps the time of a condition whose status stays', () => {
    const old = {
      type: 'Held',
      status: 'True',
      reason: 'Older',
      message: '',
      lastTransitionTime: '2029-01-01T00:00:00Z',
    };
    const decision = decide({ hold: {}, status: { conditions: [old] } });
    expect(decision?.steps[0]).toMatchObject({
      status: { conditions: [{ type: 'Held', lastTransitionTime: old.lastTransitionTime }, {}] },
    });
  });

  it.each([
    ['VideoNotFound', null],
    ['VideoDeleted', { status: 'ready', deleted: true }],
    ['VideoFailed', { status: 'failed', deleted: false }],
  ] as const)('says %s, and holds nothing', (reason, video) => {
    expect(told(decide({ video }))).toEqual([`Held=False/${reason}`]);
  });

  it('keeps the hold of a video that failed or was deleted since', () => {
    for (const video of [
      { status: 'failed', deleted: false },
      { status: 'held', deleted: true },
    ] as const) {
      expect(told(decide({ video, hold: {} }))[0]).toBe('Held=True/Held');
    }
  });

  it('says of an edit that comes after its video was deleted that it is not applied', () => {
    const video = { status: 'ready', deleted: true } as const;
    const decision = decide({ video, hold: { legal: true }, spec: { legal: false } });
    expect(told(decision)[0]).toBe('Held=True/EditNotApplied');
    expect(told(decide({ video, hold: { legal: true }, spec: { legal: true } }))[0]).toBe('Held=True/Held');
  });

  it('that cannot be read says so', () => {
    expect(told(decide({ spec: { videoId: 7 } }))).toEqual(['Held=False/InvalidSpec']);
  });
});

describe('a VideoHold that is being deleted', () => {
  const metadata = { deletionTimestamp: '2030-01-02T00:00:00Z', finalizers: ['other/one', ours] };

  it('lifts its hold, then lets go of the object', () => {
    const decision = decide({ metadata, spec: { onDelete: 'Release' }, hold: {} });
    expect(decision).toEqual({
      steps: [
        { type: 'lift', videoId: 'vid_1' },
        { type: 'finalizers', finalizers: ['other/one'] },
      ],
      again: false,
    });
  });

  it('lifts nothing when it retains, or holds nothing', () => {
    expect(types(decide({ metadata, hold: {} }))).toEqual(['finalizers']);
    expect(types(decide({ metadata, spec: { onDelete: 'Release' } }))).toEqual(['finalizers']);
  });

  it('is left alone once it is let go of, and places nothing', () => {
    const gone = { ...metadata, finalizers: ['other/one'] };
    expect(decide({ metadata: gone, spec: { onDelete: 'Release' } })).toBeNull();
  });
});

describe('a VideoHold that is gone', () => {
  const gone = { takenOver: false };
  const spec = { onDelete: 'Release' };

  it('has its hold lifted by its last word, though it never had a finalizer', () => {
    const decision = decide({ gone, spec, hold: {} });
    expect(decision).toEqual({
      steps: [{ type: 'lift', videoId: 'vid_1' }, { type: 'forget' }],
      again: true,
    });
  });

  it('leaves its hold when it retains, and to one that took its name over', () => {
    expect(types(decide({ gone, hold: {} }))).toEqual(['forget']);
    expect(types(decide({ gone: { takenOver: true }, spec, hold: {} }))).toEqual(['forget']);
  });

  it('is forgotten when nothing is left to lift', () => {
    expect(types(decide({ gone, spec }))).toEqual(['forget']);
  });

  it('keeps its hold when it had a finalizer and no watch told of its end', () => {
    const last = (onDelete: string, finalizers: string[]): KubernetesObject => ({
      metadata: {
        ...{ name: 'h', namespace: 'default', uid: 'u', generation: 3, resourceVersion: '7' },
        ...{ creationTimestamp: '2030-01-01T00:00:00Z', finalizers },
      },
      spec: { videoId: 'vid_1', onDelete },
    });
    expect(releasesUnseen(last('Release', ['other/one']))).toBe(true);
    expect(releasesUnseen(last('Release', ['other/one', ours]))).toBe(false);
    expect(releasesUnseen(last('Retain', []))).toBe(false);
  });
});
