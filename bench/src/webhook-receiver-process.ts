import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface ReceiverReport {
  requests: number;
  /** Milliseconds from `at` in the body to the arrival, of each request whose body has it. */
  latencies: number[];
}

export interface ReceiverProcess {
  url: string;
  /** What came since the last report. */
  report(): Promise<ReceiverReport>;
  stop(): void;
}

export async function startReceiver(): Promise<ReceiverProcess> {
  const child = fork(fileURLToPath(new URL('./webhook-receiver.ts', import.meta.url)));
  const [port] = (await once(child, 'message')) as [number];
  return {
    url: `http://127.0.0.1:${port}`,
    report: async () => {
      child.send('report');
      const [report] = (await once(child, 'message')) as [ReceiverReport];
      return report;
    },
    stop: () => {
      child.disconnect();
    },
  };
}
