import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type Readable } from 'node:stream';

const timeoutMs = 30 * 60_000;

/**
 * Runs ffmpeg with two outputs, `pipe:1` and `pipe:3`.
 * @returns what came out of both, and what it complained of
 * @throws Error with its last words when it gives up
 */
export async function ffmpeg(
  args: readonly string[],
  signal?: AbortSignal,
): Promise<[first: Buffer, second: Buffer, complaints: string]> {
  const common = ['-nostdin', '-v', 'error', '-protocol_whitelist', 'file'];
  return run('ffmpeg', [...common, ...args], signal);
}

/** @returns what ffprobe says of the streams, as JSON */
export async function ffprobe(path: string, signal?: AbortSignal): Promise<string> {
  const options = ['-v', 'error', '-protocol_whitelist', 'file', '-of', 'json', '-show_streams'];
  const [out] = await run('ffprobe', [...options, path], signal);
  return out.toString('utf8');
}

async function run(
  name: string,
  args: readonly string[],
  signal: AbortSignal = new AbortController().signal,
): Promise<[Buffer, Buffer, string]> {
  const child = spawn(name, args, {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  });
  const [, first, errors, second] = child.stdio as (Readable | undefined)[];
  const [[code], ...read] = await Promise.all([
    once(child, 'close') as Promise<[number | null]>,
    ...[first, second, errors].map(all),
  ]);
  const [one = Buffer.alloc(0), two = Buffer.alloc(0), said = Buffer.alloc(0)] = read;
  const complaints = said.toString('utf8').trim();
  if (code !== 0) throw new Error(`${name} ended with ${code ?? 'a signal'}: ${complaints.slice(-500)}`);
  return [one, two, complaints];
}

async function all(stream: Readable | undefined): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream ?? []) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
