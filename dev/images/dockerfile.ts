/** One step of a stage. */
export type Step =
  | { kind: 'run'; command: string; caches: readonly string[] }
  | { kind: 'copy'; from: string | null; mode: string | null; sources: readonly string[]; target: string }
  | { kind: 'env'; variables: Readonly<Record<string, string>> }
  | { kind: 'workdir'; path: string }
  | { kind: 'user'; user: string }
  | { kind: 'entrypoint'; command: readonly string[] }
  | { kind: 'expose'; ports: readonly number[] };

export interface Stage {
  name: string;
  /** Another stage, or an image. */
  from: string;
  steps: readonly Step[];
}

/**
 * Reads as much of the Dockerfile format as ours uses (docs.docker.com/reference/dockerfile).
 * @returns stages by name, in order
 * @throws Error on anything else: what is not understood is not built
 */
export function parseDockerfile(text: string): ReadonlyMap<string, Stage> {
  const stages = new Map<string, Stage & { steps: Step[] }>();
  let stage: (Stage & { steps: Step[] }) | undefined;
  for (const line of logicalLines(text)) {
    const [, instruction = '', rest = ''] = /^([A-Z]+)\s+(.*)$/s.exec(line) ?? [];
    if (instruction === 'FROM') {
      const [, from, name] = /^(\S+) AS ([a-z][a-z-]*)$/.exec(rest) ?? [];
      if (from === undefined || name === undefined || stages.has(name)) throw notUnderstood(line);
      stage = { name, from, steps: [] };
      stages.set(name, stage);
    } else {
      if (stage === undefined) throw notUnderstood(line);
      stage.steps.push(parseStep(instruction, rest, line));
    }
  }
  return stages;
}

const notUnderstood = (line: string): Error => new Error(`not understood in the Dockerfile: ${line}`);

/** Lines without comments, continued ones joined. */
const logicalLines = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => !/^\s*#/.test(line))
    .join('\n')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

function parseStep(instruction: string, rest: string, line: string): Step {
  switch (instruction) {
    case 'RUN': {
      const { flags, words } = flagged(rest);
      const caches = flags.map((flag) => /^--mount=type=cache,target=(\/\S+)$/.exec(flag)?.[1]);
      if (caches.includes(undefined)) throw notUnderstood(line);
      return { kind: 'run', command: words, caches: caches.filter((each) => each !== undefined) };
    }
    case 'COPY': {
      const { flags, words } = flagged(rest);
      const value = (name: string): string | null =>
        flags.find((flag) => flag.startsWith(`--${name}=`))?.slice(name.length + 3) ?? null;
      const paths = words.split(/\s+/);
      const target = paths.pop();
      if (target === undefined || paths.length === 0 || flags.some((f) => !/^--(from|chmod)=/.test(f)))
        throw notUnderstood(line);
      return { kind: 'copy', from: value('from'), mode: value('chmod'), sources: paths, target };
    }
    case 'ENV': {
      const pairs = rest.split(/\s+/).map((pair) => /^(\w+)=([^"'\s]*)$/.exec(pair));
      const entries = pairs.map((pair): [string, string] => {
        if (pair === null) throw notUnderstood(line);
        return [pair[1] ?? '', pair[2] ?? ''];
      });
      return { kind: 'env', variables: Object.fromEntries(entries) };
    }
    case 'WORKDIR':
      return { kind: 'workdir', path: rest };
    case 'USER':
      return { kind: 'user', user: rest };
    case 'ENTRYPOINT':
      return { kind: 'entrypoint', command: JSON.parse(rest) as string[] };
    case 'EXPOSE':
      return { kind: 'expose', ports: rest.split(/\s+/).map(Number) };
    default:
      throw notUnderstood(line);
  }
}

function flagged(rest: string): { flags: string[]; words: string } {
  const [flags = ''] = /^(--\S+\s+)*/.exec(rest) ?? [];
  return { flags: flags.split(/\s+/).filter(Boolean), words: rest.slice(flags.length) };
}
