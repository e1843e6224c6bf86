/** Sends text messages. */
export interface SmsSender {
  /**
   * Resolves once the provider has taken the message.
   * @param to in E.164
   * @throws SmsSendError when it may not have
   */
  send(to: string, text: string): Promise<void>;
}

/** No message went out. Neither number nor text is in the error: it is logged. */
export class SmsSendError extends Error {
  override readonly name = 'SmsSendError';
  readonly code = 'sms_send_failed';
}
