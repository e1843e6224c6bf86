import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A process of a bench beside this one, so that the two share no event loop. */
interface HelperProcess {
  tell(message: object | string): void;
  /** The next message from it. @throws Error when it ends instead; what `signal` aborts with */
  hear(signal?: AbortSignal): Promise<unknown>;
  stop(): Promise<void>;
}

/** @param script in the folder above, which ends when it is disconnected */
export function startHelper(script: string): HelperProcess {
  const child = fork(fileURLToPath(new URL(`../${script}`, import.meta.url)), {
    // kafkajs has it.
    execArgv: ['--disable-warning=TimeoutNegativeWarning'],
  });
  const ended = once(child, 'exit');
  const isOver = ended.then(() => Promise.reject(new Error(`${script} ended too early`)));
  isOver.catch(() => undefined);
  return {
    tell: (message) => void child.send(message),
    hear: async (signal) => {
      const heard = once(child, 'message', signal === undefined ? {} : { signal });
      heard.catch(() => undefined);
      const [message] = (await Promise.race([heard, isOver])) as [unknown];
      return message;
    },
    stop: async () => {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
