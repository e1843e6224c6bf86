import { channel } from 'node:diagnostics_channel';

/**
 * A moment between two steps that no transaction joins. A process that dies there has done the first and not the
 * second; what comes after it must mend that.
 */
export type Phase =
  /** What an outbox's row says is committed; the bus does not have it. */
  | 'outbox.read'
  /** The bus has it; the outbox does too. */
  | 'outbox.published'
  /** A message was handled; its offset is not committed. */
  | 'message.handled'
  /** A permit's task was claimed; the permit's offset is not committed. */
  | 'task.claimed'
  /** The objects of an attempt are stored; the record does not know. */
  | 'task.stored'
  /** The store has begun an upload that the record does not know. */
  | 'upload.created'
  /** The store has joined an upload's parts; the record does not know. */
  | 'upload.joined'
  /** A receiver has answered; the record does not know. */
  | 'webhook.sent';

const phases = channel('millrace:phase');

/**
 * Tells of a phase on the diagnostics channel `millrace:phase`, as `{ phase, details }`. The tests of faults listen
 * there, in the process itself, to end it at that very point (docs/adr/0016); without a listener it costs a look at a
 * flag, and `details` is not asked for.
 */
export function reachPhase(phase: Phase, details: () => Record<string, unknown>): void {
  if (phases.hasSubscribers) phases.publish({ phase, details: details() });
}
