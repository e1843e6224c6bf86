/** Tries to take the lock file named by the argument, says `taken` or `held`, and keeps it until standard input ends. */
import { LockHeldError, takeLock } from '../data-folder/process-lock.ts';

try {
  takeLock(process.argv[2] ?? '', 'service');
  process.stdout.write('taken\n');
} catch (error) {
  if (!(error instanceof LockHeldError)) throw error;
  process.stdout.write('held\n');
}
process.stdin.resume();
