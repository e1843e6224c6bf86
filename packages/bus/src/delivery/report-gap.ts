import { type Logger } from '@millrace/platform';
import { type SubscribeOptions } from '../bus.ts';

/** Says that messages of a partition were lost to this subscription before it saw them. Never throws. */
export function reportGap(logger: Logger, partition: number, onGap: SubscribeOptions['onGap']): void {
  logger.warn({ partition }, 'messages passed by unseen');
  try {
    onGap?.(partition);
  } catch (error) {
    logger.error({ partition, err: error }, 'the gap callback failed');
  }
}
