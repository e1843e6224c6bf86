import { BusRequestError, BusUnavailableError } from '../bus.ts';

/** The protocol's name of an error, such as `REBALANCE_IN_PROGRESS`, wherever kafkajs wrapped it; else undefined. */
export function protocolError(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('type' in at && typeof at.type === 'string') return at.type;
    // Said when every broker was asked often enough: on a new cluster they have yet to make the topic of offsets.
    if (at.name === 'KafkaJSGroupCoordinatorNotFound') return 'GROUP_COORDINATOR_NOT_AVAILABLE';
    // Several topics may fail at once: the first that says why speaks for all.
    if ('errors' in at && Array.isArray(at.errors)) {
      const types = at.errors.map(protocolError);
      const type = types.find((name) => name !== undefined);
      if (type !== undefined) return type;
    }
  }
  return undefined;
}

/** What the port calls an error of kafkajs. Whatever is not the caller's mistake is worth a retry. */
export function toBusError(error: unknown): BusRequestError | BusUnavailableError {
  if (error instanceof BusRequestError || error instanceof BusUnavailableError) return error;
  const message = error instanceof Error ? error.message : 'the brokers cannot be reached';
  switch (protocolError(error)) {
    case 'MESSAGE_TOO_LARGE':
    case 'RECORD_LIST_TOO_LARGE':
      return new BusRequestError('message_too_large', message, { cause: error });
    case 'UNKNOWN_TOPIC_OR_PARTITION':
    case 'INVALID_TOPIC_EXCEPTION':
      return new BusRequestError('unknown_topic', message, { cause: error });
    default:
      return new BusUnavailableError(message, { cause: error });
  }
}
