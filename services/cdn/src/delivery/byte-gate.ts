/** Lets work through while the bytes it holds stay under a bound; the rest waits in its order. */
export interface ByteGate {
  /**
   * Resolves with the function that gives the bytes back, once there is room for them. Work larger than the
   * whole bound passes alone. Rejects with the signal's reason when it aborts before.
   */
  enter(bytes: number, signal: AbortSignal): Promise<() => void>;
}

interface Waiter {
  bytes: number;
  pass: () => void;
}

export function createByteGate(maximumBytes: number): ByteGate {
  const waiters: Waiter[] = [];
  let held = 0;
  const fits = (bytes: number): boolean => held === 0 || held + bytes <= maximumBytes;
  const admitWaiters = (): void => {
    for (let next = waiters[0]; next !== undefined && fits(next.bytes); next = waiters[0]) {
      waiters.shift();
      next.pass();
    }
  };
  const hold = (bytes: number): (() => void) => {
    held += bytes;
    return () => {
      held -= bytes;
      admitWaiters();
    };
  };
  return {
    enter: (bytes, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) {
          reject(signal.reason as Error);
          return;
        }
        if (waiters.length === 0 && fits(bytes)) {
          resolve(hold(bytes));
          return;
        }
        const onAbort = (): void => {
          waiters.splice(waiters.indexOf(waiter), 1);
          reject(signal.reason as Error);
          admitWaiters();
        };
        const waiter: Waiter = {
          bytes,
          pass: () => {
            signal.removeEventListener('abort', onAbort);
            resolve(hold(bytes));
          },
        };
        waiters.push(waiter);
        signal.addEventListener('abort', onAbort, { once: true });
      }),
  };
}
