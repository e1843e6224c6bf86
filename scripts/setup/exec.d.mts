export function runQuietly(
  command: string,
  args: readonly string[],
  options?: {
    onStart?: (pid: number) => void;
    cwd?: string;
    env?: NodeJS.ProcessEnv;
  },
): Promise<boolean>;
export function findExecutable(folders: readonly string[], name: string): string | undefined;
