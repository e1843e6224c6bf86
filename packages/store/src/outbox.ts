import {
  type AccountPlaybackState,
  type ProjectPlaybackState,
  topics,
  type VideoPlaybackState,
} from '@millrace/contract';
import { currentTraceHeaders } from '@millrace/platform';
import { type Transaction } from './db.ts';

/** A message that the relay publishes once the transaction that wrote it has committed. */
export interface OutboxMessage {
  topic: string;
  key: string;
  /** The aggregate's version: relayed by (key, version). */
  version: number;
  value: object;
  /** Trace context (`traceparent`, `tracestate`) and other message headers. */
  headers?: Record<string, string>;
}

/**
 * Adds messages to the outbox; they leave with the transaction's commit or not at all. The current span is what they
 * follow from, else what their headers say.
 */
export async function addToOutbox(tx: Transaction, messages: readonly OutboxMessage[]): Promise<void> {
  if (messages.length === 0) return;
  const trace = currentTraceHeaders();
  await tx.query(
    `insert into outbox (topic, key, version, value, headers)
     select * from unnest($1::text[], $2::text[], $3::bigint[], $4::jsonb[], $5::jsonb[])`,
    [
      messages.map((message) => message.topic),
      messages.map((message) => message.key),
      messages.map((message) => message.version),
      messages.map((message) => JSON.stringify(message.value)),
      messages.map((message) => JSON.stringify({ ...message.headers, ...trace })),
    ],
    'outbox-add',
  );
}

/** The message that tells every CDN process of a video's new state. */
export const videoStateMessage = (state: VideoPlaybackState): OutboxMessage => ({
  topic: topics.playbackState.name,
  key: state.videoId,
  version: state.version,
  value: { v: 1, kind: 'video', state },
});

/** The message that tells every CDN process of an account's new state. */
export const accountStateMessage = (state: AccountPlaybackState): OutboxMessage => ({
  topic: topics.playbackState.name,
  key: state.accountId,
  version: state.version,
  value: { v: 1, kind: 'account', state },
});

/** The message that tells every CDN process of a project's new branding. */
export const projectStateMessage = (state: ProjectPlaybackState): OutboxMessage => ({
  topic: topics.playbackState.name,
  key: state.projectId,
  version: state.version,
  value: { v: 1, kind: 'project', state },
});
