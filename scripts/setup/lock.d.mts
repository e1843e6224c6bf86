export function withLock<T>(
  path: string,
  work: (onStart: (pid: number) => void) => T | Promise<T>,
): Promise<T>;
