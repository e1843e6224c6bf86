import { type FailureCode } from '@millrace/contract';

/** What the customer and the test know by themselves, beside what the service says. */
export interface Ledger {
  accountId: string;
  uploads: UploadEntry[];
  /** Requests of webhooks as they came. */
  receipts: Receipt[];
  /** Segments that were sent whole to a viewer. */
  views: View[];
  /** Messages that nobody can read, by topic. */
  poison: Map<string, number>;
  /** Keys of outbox rows that no bus takes. */
  unsendable: string[];
}

export interface UploadEntry {
  videoId: string;
  /** What must become of it; `deleted` when the customer has it removed. */
  expected: 'ready' | 'deleted' | FailureCode;
}

export interface Receipt {
  endpointId: string;
  eventId: string;
  body: string;
  /** Its signature is right. */
  genuine: boolean;
  /** It was answered with a 2xx. */
  accepted: boolean;
}

export interface View {
  videoId: string;
  token: string;
  segment: number;
  ms: number;
  /** Nothing ended the CDN after it: it must have been counted. */
  certain: boolean;
}
