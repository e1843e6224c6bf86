import { readFile } from 'node:fs/promises';
import { cpuSecondsBelow, cpuSecondsOf } from '../cpu.ts';
import { nowMs } from './numbers.ts';

/**
 * Watches what each process uses of a processor, and for which share of the time something on this machine waited for
 * one: what is slow while that is high waits too.
 *
 * @param pids by name, of processes whose children count with them
 * @returns ends the watch: per cent of one processor by name, the most first, and of the time
 */
export async function watchCpu(pids: Readonly<Record<string, number>>): Promise<() => Promise<string>> {
  const read = async (): Promise<Map<string, number>> => {
    const all = Object.entries(pids).map(async ([name, pid]): Promise<[string, number]> => [
      name,
      await cpuSecondsBelow(pid),
    ]);
    return new Map([...(await Promise.all(all)), ['this bench', await cpuSecondsOf('self')]]);
  };
  const [startedAt, before, waitedBefore] = [nowMs(), await read(), await secondsOfWaiting()];
  return async () => {
    const seconds = (nowMs() - startedAt) / 1_000;
    const shares = [...(await read())].map(([name, used]): [string, number] => [
      name,
      (100 * (used - (before.get(name) ?? 0))) / seconds,
    ]);
    const waited = Math.min(100, (100 * ((await secondsOfWaiting()) - waitedBefore)) / seconds);
    const list = shares.sort(([, a], [, b]) => b - a).map(([name, share]) => `${name} ${share.toFixed(0)} %`);
    return `${list.join(', ')}; something waited for one ${waited.toFixed(0)} % of the time`;
  };
}

/** NaN where the system does not tell (Linux with PSI does). */
async function secondsOfWaiting(): Promise<number> {
  const text = await readFile('/proc/pressure/cpu', 'utf8').catch(() => '');
  return Number(/^some .*total=(\d+)/.exec(text)?.[1]) / 1e6;
}
