/** The states of `uploads.state`. */
export type UploadState = 'open' | 'completing' | 'completed' | 'failed' | 'cancelled' | 'expired';

/** Everything that can move an upload. */
export type UploadTrigger =
  /** A complete call whose parts were found right begins to join them. */
  | 'complete_started'
  /** Somebody goes on with a completion whose process was lost. */
  | 'complete_resumed'
  /** The store refused to join the parts; they can be sent again. */
  | 'complete_undone'
  | 'complete_accepted'
  | 'complete_rejected'
  | 'cancelled'
  | 'expired'
  /** The video was deleted under the upload. */
  | 'video_deleted';

/** What the machine needs to know of an upload. */
export interface UploadSituation {
  state: UploadState;
  /** `expiresAt` has passed. */
  overdue: boolean;
  /** Somebody holds the lease of the completion. */
  leased: boolean;
}

export type UploadDecision =
  | { kind: 'move'; to: UploadState }
  /** A completion is running: its outcome decides. */
  | { kind: 'wait' }
  /** Cancelled, expired, completed or failed: `upload_closed`. */
  | { kind: 'closed' };

interface Row {
  from: readonly UploadState[];
  trigger: UploadTrigger;
  to: UploadState;
}

/** One row a line; what is not here is refused. */
const uploadTransitions: readonly Row[] = [
  { from: ['open'], trigger: 'complete_started', to: 'completing' },
  { from: ['completing'], trigger: 'complete_resumed', to: 'completing' },
  { from: ['completing'], trigger: 'complete_undone', to: 'open' },
  { from: ['completing'], trigger: 'complete_accepted', to: 'completed' },
  { from: ['completing'], trigger: 'complete_rejected', to: 'failed' },
  { from: ['open'], trigger: 'cancelled', to: 'cancelled' },
  { from: ['open'], trigger: 'expired', to: 'expired' },
  { from: ['open', 'completing'], trigger: 'video_deleted', to: 'cancelled' },
];

/**
 * Decides one move of an upload, so that complete, cancel and expiry exclude each other (contract UPL-236).
 * Pure: the caller holds the upload's row lock.
 */
export function decideUpload(upload: UploadSituation, trigger: UploadTrigger): UploadDecision {
  const row = uploadTransitions.find(
    (candidate) => candidate.trigger === trigger && candidate.from.includes(upload.state),
  );
  if (!row) return upload.state === 'completing' ? { kind: 'wait' } : { kind: 'closed' };
  // Past its time an upload is closed, whether or not the sweep has come by; before it, expiry has no say.
  if (trigger === 'expired' && !upload.overdue) return { kind: 'closed' };
  if (upload.overdue && (trigger === 'complete_started' || trigger === 'cancelled'))
    return { kind: 'closed' };
  if (trigger === 'complete_resumed' && upload.leased) return { kind: 'wait' };
  return { kind: 'move', to: row.to };
}
