import { type ProcessMemory } from './measure-uploads.ts';
import { type Growth, growthOf, type Sample } from './memory.ts';

const mebibytes = (bytes: number): string => (bytes / 1024 ** 2).toFixed(1);

function show(samples: readonly Sample[]): string {
  const { firstBytes, lastBytes, ratio, bytesPerMinute } = growthOf(samples);
  const slope = `${bytesPerMinute < 0 ? '' : '+'}${(bytesPerMinute / 1_024).toFixed(0)} KiB a minute`;
  return `${mebibytes(firstBytes)} → ${mebibytes(lastBytes)} (× ${ratio.toFixed(3)}, ${slope})`;
}

/** A line for each process. */
export const showMemory = (processes: readonly ProcessMemory[]): string[] =>
  processes.map(({ name, resident, heap }) =>
    [
      `${name}: resident ${resident.length === 0 ? 'unknown' : show(resident)}`,
      ...(heap.length === 0 ? [] : [`heap ${show(heap)}`]),
    ].join('; '),
  );

/** Which of the services grew most, by what is kept and by what is resident. */
export function worstGrowth(processes: readonly ProcessMemory[]): string {
  // Only services have one.
  const services = processes.filter(({ heap }) => heap.length > 0);
  const worst = (of: 'heap' | 'resident'): string => {
    const grown = services
      .filter((each) => each[of].length > 0)
      .map((each): [string, Growth] => [each.name, growthOf(each[of])])
      .sort(([, a], [, b]) => b.ratio - a.ratio);
    const [first] = grown;
    return first === undefined ? 'unknown' : `× ${first[1].ratio.toFixed(3)} (${first[0]})`;
  };
  return `of the services' heaps the last third is at most ${worst('heap')} of the first, of their resident memory ${worst('resident')}`;
}
