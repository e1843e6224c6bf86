import { readFile } from 'node:fs/promises';

/** The start of a process with a debugger's door on a port of its own, which it names in its log. */
export const withInspector = '--inspect=127.0.0.1:0';

/** What a process keeps, once its rubbish is gone. */
export interface Heap {
  /** Collects all rubbish. @returns bytes that JavaScript keeps, buffers included */
  usedBytes(): Promise<number>;
  close(): void;
}

interface Answer {
  id?: number;
  result?: { usedSize?: number; backingStorageSize?: number };
  error?: { message: string };
}

/** Opens the heap of a process that was started `withInspector`. @throws Error when its log names no door */
export async function openHeap(logPath: string): Promise<Heap> {
  const log = await readFile(logPath, 'utf8');
  const url = [...log.matchAll(/Debugger listening on (ws:\S+)/g)].at(-1)?.[1];
  if (url === undefined) throw new Error(`no debugger listens, by ${logPath}`);
  const socket = new WebSocket(url);
  const waiting = new Map<number, (answer: Answer) => void>();
  const closed = Promise.withResolvers<never>();
  closed.promise.catch(() => undefined);
  socket.addEventListener('message', ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer;
    waiting.get(answer.id ?? 0)?.(answer);
    waiting.delete(answer.id ?? 0);
  });
  socket.addEventListener('close', () => closed.reject(new Error(`the process of ${logPath} is gone`)));
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', () => reject(new Error(`no debugger answers, by ${logPath}`)));
  });
  let last = 0;
  const call = async (method: string): Promise<NonNullable<Answer['result']>> => {
    const id = ++last;
    const answered = new Promise<Answer>((resolve) => waiting.set(id, resolve));
    socket.send(JSON.stringify({ id, method }));
    const { result, error } = await Promise.race([answered, closed.promise]);
    if (result === undefined) throw new Error(`${method}: ${error?.message ?? 'no result'}`);
    return result;
  };
  return {
    usedBytes: async () => {
      await call('HeapProfiler.collectGarbage');
      const { usedSize = 0, backingStorageSize = 0 } = await call('Runtime.getHeapUsage');
      return usedSize + backingStorageSize;
    },
    close: () => socket.close(),
  };
}
