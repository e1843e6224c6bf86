import { type Stryker } from '@stryker-mutator/core';

/** A mutant as Stryker reports it. */
type MutantResult = Awaited<ReturnType<Stryker['runMutationTest']>>[number];

/** One change to the code, and whether a test noticed it. */
export interface Mutant {
  file: string;
  line: number;
  /** Says the change in words that hold while the code around it moves: its line, what it was and became. */
  text: string;
  /** `broken`: with it a file of tests does not even load. Stryker leaves these out of its score, and so do we. */
  fate: 'killed' | 'survived' | 'broken';
}

const longest = 100;

/** @param file path from the project's root */
export function mutantOf(
  {
    location: { start, end },
    replacement,
    status,
  }: Pick<MutantResult, 'location' | 'replacement' | 'status'>,
  file: string,
  source: string,
): Mutant {
  const lines = source.split('\n');
  const first = lines[start.line - 1] ?? '';
  const between = lines.slice(start.line - 1, end.line);
  const last = between.length - 1;
  const original = between
    .map((line, n) => line.slice(n === 0 ? start.column - 1 : 0, n === last ? end.column - 1 : undefined))
    .join('\n');
  return {
    file,
    line: start.line,
    text: `${brief(first)} | ${brief(original)} => ${brief(replacement)}`,
    fate: fateOf(status),
  };
}

const brief = (code: string): string => {
  const text = code.replace(/\s+/g, ' ').trim();
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
};

function fateOf(status: MutantResult['status']): Mutant['fate'] {
  if (status === 'Killed' || status === 'Timeout') return 'killed';
  return status === 'Survived' || status === 'NoCoverage' ? 'survived' : 'broken';
}
