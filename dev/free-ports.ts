import { quietPort } from '@millrace/platform';

/** Different TCP ports that nobody listens on now, nor gets by chance while the server that has one is down. */
export async function freePorts(count: number, host: string): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await quietPort(host, ports));
  return ports;
}
