import { BusRequestError, type OutgoingMessage } from './bus.ts';
import { partitionOf } from './partitioner.ts';

/** What a message may weigh: key, value and headers together, in bytes (Kafka's default `max.request.size`). */
export const maximumMessageBytes = 1_048_576;

/** A message as it goes over the wire. */
interface EncodedMessage {
  topic: string;
  key: string;
  /** JSON text. */
  value: string;
  headers: Record<string, string>;
  /** Key, value and headers in UTF-8. */
  bytes: number;
}

/**
 * Turns a message into what every adapter sends, under the same limits.
 *
 * @throws {BusRequestError} `invalid_message` for a value without a JSON form or a NUL in the key (PostgreSQL
 *   cannot keep one), `message_too_large` over {@link maximumMessageBytes}
 */
function encodeMessage(message: OutgoingMessage): EncodedMessage {
  const value = toJson(message);
  // Half a surrogate pair has no UTF-8 form: it becomes U+FFFD here, as it would on the way to any server.
  const key = message.key.toWellFormed();
  if (key.includes('\0')) throw new BusRequestError('invalid_message', 'a message key may not contain NUL');
  const headers: Record<string, string> = {};
  let bytes = Buffer.byteLength(key) + Buffer.byteLength(value);
  for (const [name, text] of Object.entries(message.headers ?? {})) {
    headers[name] = text.toWellFormed();
    bytes += Buffer.byteLength(name) + Buffer.byteLength(text);
  }
  if (bytes > maximumMessageBytes) {
    throw new BusRequestError(
      'message_too_large',
      `a message for ${message.topic} has ${bytes} bytes, more than ${maximumMessageBytes}`,
    );
  }
  return { topic: message.topic, key, value, headers, bytes };
}

/** A message with the partition it belongs to. */
export interface PlacedMessage extends EncodedMessage {
  partition: number;
}

/**
 * Encodes a batch and gives each message its partition: the one it names, else its key's.
 *
 * @param partitionsOf number of partitions of a topic
 * @throws {BusRequestError} as `encodeMessage`; `invalid_partition`; what `partitionsOf` throws
 */
export async function placeMessages(
  batch: readonly OutgoingMessage[],
  partitionsOf: (topic: string) => Promise<number>,
): Promise<PlacedMessage[]> {
  const encoded = batch.map(encodeMessage);
  const placed: PlacedMessage[] = [];
  for (const [index, message] of encoded.entries()) {
    const partitions = await partitionsOf(message.topic);
    const partition = batch[index]?.partition ?? partitionOf(message.key, partitions);
    if (!Number.isInteger(partition) || partition < 0 || partition >= partitions) {
      throw new BusRequestError('invalid_partition', `${message.topic} has no partition ${partition}`);
    }
    placed.push({ ...message, partition });
  }
  return placed;
}

function toJson(message: OutgoingMessage): string {
  let text: string | undefined;
  let cause: unknown;
  try {
    // Typed as a string, yet undefined for a function or undefined itself.
    text = JSON.stringify(message.value);
  } catch (error) {
    cause = error;
  }
  if (text === undefined) {
    throw new BusRequestError('invalid_message', `a message for ${message.topic} has no JSON form`, {
      cause,
    });
  }
  return text;
}
