import { type Logger } from '@millrace/platform';
import { type SmsSender } from './sms-sender.ts';

/** For development: notes that a message would have gone out, and never to whom or what it said. */
export const createLogSmsSender = (logger: Logger): SmsSender => ({
  send: (_to, text) => {
    logger.info({ characters: text.length }, 'sms not sent: development');
    return Promise.resolve();
  },
});
