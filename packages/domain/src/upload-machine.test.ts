import { describe, expect, it } from '@jest/globals';
import { decideUpload, type UploadState, type UploadTrigger } from './upload-machine.ts';

const states: UploadState[] = ['open', 'completing', 'completed', 'failed', 'cancelled', 'expired'];
const triggers: UploadTrigger[] = [
  'complete_started',
  'complete_resumed',
  'complete_undone',
  'complete_accepted',
  'complete_rejected',
  'cancelled',
  'expired',
  'video_deleted',
];

/** State by state, what each trigger leads to; what is not here is refused. */
const moves: Partial<Record<UploadState, Partial<Record<UploadTrigger, UploadState>>>> = {
  open: { complete_started: 'completing', cancelled: 'cancelled', video_deleted: 'cancelled' },
  completing: {
    complete_resumed: 'completing',
    complete_undone: 'open',
    complete_accepted: 'completed',
    complete_rejected: 'failed',
    video_deleted: 'cancelled',
  },
};

describe('decideUpload', () => {
  for (const state of states) {
    for (const trigger of triggers) {
      const to = moves[state]?.[trigger];
      const expected =
        to !== undefined
          ? { kind: 'move', to }
          : state === 'completing'
            ? { kind: 'wait' }
            : { kind: 'closed' };
      it(`${state}, ${trigger}: ${to ?? expected.kind}`, () => {
        expect(decideUpload({ state, overdue: false, leased: false }, trigger)).toEqual(expected);
      });
    }
  }

  it('expires an open upload whose time is over, and takes nothing else of it [VID-110]', () => {
    const overdue = { state: 'open', overdue: true, leased: false } as const;
    expect(decideUpload(overdue, 'expired')).toEqual({ kind: 'move', to: 'expired' });
    expect(decideUpload(overdue, 'complete_started')).toEqual({ kind: 'closed' });
    expect(decideUpload(overdue, 'cancelled')).toEqual({ kind: 'closed' });
    expect(decideUpload(overdue, 'video_deleted')).toEqual({ kind: 'move', to: 'cancelled' });
  });

  it('lets a completion that began in time end, and be resumed, after its time', () => {
    const late = { state: 'completing', overdue: true, leased: false } as const;
    expect(decideUpload(late, 'complete_resumed')).toEqual({ kind: 'move', to: 'completing' });
    expect(decideUpload(late, 'complete_accepted')).toEqual({ kind: 'move', to: 'completed' });
    expect(decideUpload(late, 'expired')).toEqual({ kind: 'wait' });
  });

  it('does not take a completion over while its lease lasts', () => {
    const leased = { state: 'completing', overdue: false, leased: true } as const;
    expect(decideUpload(leased, 'complete_resumed')).toEqual({ kind: 'wait' });
    expect(decideUpload(leased, 'complete_accepted')).toEqual({ kind: 'move', to: 'completed' });
  });
});
