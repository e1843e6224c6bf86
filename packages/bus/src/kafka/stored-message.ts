import { type KafkaMessage } from './kafkajs.ts';
import { type StoredMessage } from '../delivery/partition-reader.ts';

/**
 * A message as kafkajs read it. Nobody promises that it is one of ours: a missing key or body (a tombstone) is
 * empty, and of a header that came several times the last one counts.
 */
export const toStoredMessage = ({ offset, key, value, headers, timestamp }: KafkaMessage): StoredMessage => ({
  offset: Number(offset),
  key: key?.toString() ?? '',
  value: value?.toString() ?? '',
  headers: Object.fromEntries(Object.entries(headers ?? {}).map(([name, text]) => [name, textOf(text)])),
  timestamp: new Date(Number(timestamp)),
});

const textOf = (text: NonNullable<KafkaMessage['headers']>[string]): string =>
  (Array.isArray(text) ? text.at(-1) : text)?.toString() ?? '';
