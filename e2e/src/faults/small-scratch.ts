import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A small disk of its own for an encoder's scratch. */
export interface SmallScratch {
  /** Leaves no room on it. */
  fill(): void;
  free(): void;
  /** Safe to repeat. */
  unmount(): void;
}

/** CAP_SYS_ADMIN of capabilities(7): without it root mounts nothing either. */
const mountBit = 1n << 21n;

/** What keeps this user from mounting, in a sentence; null when nothing does. */
export function missingForMounts(): string | null {
  const status = existsSync('/proc/self/status') ? readFileSync('/proc/self/status', 'utf8') : '';
  const capabilities = BigInt(`0x${/^CapEff:\s+([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  return (capabilities & mountBit) === 0n ? 'root, who alone may mount a tmpfs' : null;
}

/**
 * Mounts a tmpfs of 64 MiB on a folder, until `unmount`. Of a test that was killed `scripts/test.ts` unmounts it: under
 * Jest `process` is a copy, which hears nothing of the end.
 */
export function mountSmallScratch(folder: string): SmallScratch {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,mode=0700', 'millrace-test', folder]);
  const ballast = join(folder, 'ballast');
  let isMounted = true;
  const unmount = (): void => {
    if (!isMounted) return;
    isMounted = false;
    // Lazily: what still has a file open there keeps nobody else waiting.
    execFileSync('umount', ['--lazy', folder]);
  };
  return {
    fill: () => {
      const { bavail, bsize } = statfsSync(folder);
      writeFileSync(ballast, Buffer.alloc(bavail * bsize));
    },
    free: () => rmSync(ballast),
    unmount,
  };
}
