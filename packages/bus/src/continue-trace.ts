import { inSpan } from '@millrace/platform';
import { type BusMessage } from './bus.ts';

/**
 * Handles a message inside a span that follows from its producer's, whose context is in its headers. A message without
 * one is of nobody's doing (heartbeats, repairs) and gets no span.
 */
export function continueTrace<T>(message: BusMessage, work: () => Promise<T>): Promise<T> {
  const { topic, partition, offset, key, headers } = message;
  if (headers['traceparent'] === undefined) return work();
  const attributes = {
    'messaging.system': 'millrace',
    'messaging.operation.type': 'process',
    'messaging.destination.name': topic,
    'messaging.destination.partition.id': String(partition),
    'messaging.message.offset': offset,
    'messaging.message.key': key,
  };
  return inSpan(`process ${topic}`, { kind: 'CONSUMER', attributes, from: headers }, work);
}
