import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** One of the two servers that are compared, in a process of its own. */
export interface Side {
  name: string;
  port: number;
  /** Microseconds of CPU, user and system, that its process has used so far. */
  cpu(): Promise<number>;
  stop(): Promise<void>;
}

/** @param script beside this file; calls `serveSide` */
export async function startSide(name: string, script: string, connectionString: string): Promise<Side> {
  const child = fork(fileURLToPath(new URL(script, import.meta.url)), [connectionString], {
    // What it logs costs what it costs, and is not looked at.
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: process.env['BENCH_API_PROFILE'] === name ? ['--cpu-prof'] : [],
  });
  const [port] = await Promise.race([
    once(child, 'message') as Promise<[number]>,
    once(child, 'exit').then(() => Promise.reject(new Error(`${name} did not start`))),
  ]);
  return {
    name,
    port,
    cpu: async () => {
      child.send('cpu');
      const [micros] = (await once(child, 'message')) as [number];
      return micros;
    },
    stop: () => ended(child),
  };
}

async function ended(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.disconnect();
  await exit;
}

/** The other end: tells the parent where `listen` listens, and the CPU when asked. */
export async function serveSide(
  listen: (connectionString: string) => Promise<{ port: number; close(): Promise<void> }>,
): Promise<void> {
  const server = await listen(process.argv[2] ?? '');
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    process.send?.(user + system);
  });
  process.on('disconnect', () => void server.close().then(() => process.exit()));
  process.send?.(server.port);
}
