import { createRequire } from 'node:module';

/**
 * The one place that loads kafkajs, which is no longer maintained: whoever takes another client's place begins here.
 */
export {
  default,
  type Admin,
  type Consumer,
  type EachBatchPayload,
  type ITopicConfig,
  type Kafka,
  type KafkaConfig,
  type KafkaMessage,
  type PartitionAssigner,
  type Producer,
  type ProducerBatch,
  type RecordMetadata,
} from 'kafkajs';

interface RequestQueue {
  pending: unknown[];
  scheduleCheckPendingRequests: (this: RequestQueue) => void;
}

let idleTimersStopped = false;

/**
 * kafkajs 2.2.4 looks a thousand times a second on every connection whether a throttled request waits (with a
 * timer of a negative time, which Node warns of): an idle consumer and producer cost 32 ms of CPU a second, 5
 * without that. Nothing needs the look while nothing waits.
 */
export function stopIdleTimers(): void {
  if (idleTimersStopped) return;
  idleTimersStopped = true;
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as {
    prototype: RequestQueue;
  };
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function () {
    if (this.pending.length > 0) schedule.call(this);
  };
}
