import { cpuSecondsBelow, cpuSecondsOf } from '../cpu.ts';
import { nowMs } from './numbers.ts';

/**
 * Watches what each process uses of a processor.
 *
 * @param pids by name, of processes whose children count with them
 * @returns ends the watch: per cent of one processor by name, the most first
 */
export async function watchCpu(pids: Readonly<Record<string, number>>): Promise<() => Promise<string>> {
  const read = async (): Promise<Map<string, number>> => {
    const all = Object.entries(pids).map(async ([name, pid]): Promise<[string, number]> => [
      name,
      await cpuSecondsBelow(pid),
    ]);
    return new Map([...(await Promise.all(all)), ['this bench', await cpuSecondsOf('self')]]);
  };
  const [startedAt, before] = [nowMs(), await read()];
  return async () => {
    const seconds = (nowMs() - startedAt) / 1_000;
    const shares = [...(await read())].map(([name, used]): [string, number] => [
      name,
      (100 * (used - (before.get(name) ?? 0))) / seconds,
    ]);
    return shares
      .sort(([, a], [, b]) => b - a)
      .map(([name, share]) => `${name} ${share.toFixed(0)} %`)
      .join(', ');
  };
}
