import { type Mutant } from './mutants.ts';

/** Of an area, at least this share of what can be judged must fall (in percent). */
export const neededScore = 85;

/** Mutants of a file that no test can or should notice, by their texts, and why. */
export interface Excuse {
  file: string;
  reason: string;
  mutants: readonly string[];
}

export interface Tally {
  killed: number;
  survived: number;
  broken: number;
  /** Killed out of killed and survived, in percent. */
  score: number;
}

export function tallyOf(mutants: readonly Mutant[]): Tally {
  const count = (fate: Mutant['fate']): number => mutants.filter((mutant) => mutant.fate === fate).length;
  const [killed, survived, broken] = [count('killed'), count('survived'), count('broken')];
  const judged = killed + survived;
  return { killed, survived, broken, score: judged === 0 ? 100 : (100 * killed) / judged };
}

/**
 * What keeps the list of survivors from being true: a survivor without a reason, and a reason for a mutant of these
 * files that did not survive.
 */
export function complaintsOf(mutants: readonly Mutant[], excuses: readonly Excuse[]): string[] {
  const files = new Set(mutants.map(({ file }) => file));
  const excused = new Map(
    excuses
      .filter(({ file }) => files.has(file))
      .flatMap(({ file, mutants: texts }) => texts.map((text) => [keyOf(file, text), { file, text }])),
  );
  const survivors = mutants.filter(({ fate }) => fate === 'survived');
  const unexcused = survivors.filter(({ file, text }) => !excused.has(keyOf(file, text)));
  for (const { file, text } of survivors) excused.delete(keyOf(file, text));
  return [
    ...unexcused.map(({ file, line, text }) => `${file}:${line} survives without a reason: ${text}`),
    ...Array.from(excused.values(), ({ file, text }) => `${file} has a reason for no survivor: ${text}`),
  ];
}

const keyOf = (file: string, text: string): string => `${file}\n${text}`;
