import { createReadStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { attemptOf, openAttemptPrefix } from '@millrace/store';
import { patiently } from '../work/patience.ts';
import { AttemptStopped } from '../work/trouble.ts';
import { patience, type TaskContext } from './context.ts';

/** The prefix that this attempt may write under. Its row is in the record before this resolves. */
export async function attemptPrefix(context: TaskContext): Promise<string> {
  const { store, task } = context;
  const prefix = await patiently(patience(context), () => openAttemptPrefix(store, attemptOf(task)));
  // The task is another's by now, or its video is gone; the next heartbeat would say so too.
  if (prefix === null) throw new AttemptStopped('lost');
  return prefix;
}

/** Moves a finished file from the scratch folder into the object store. Returns its size in bytes. */
export async function uploadFile(
  context: TaskContext,
  { folder, file, key }: { folder: string; file: string; key: string },
): Promise<number> {
  const { objects, signal } = context;
  const from = path.join(folder, file);
  const { size: sizeBytes } = await stat(from);
  await patiently(patience(context), () => objects.put(key, createReadStream(from), { signal, sizeBytes }));
  await rm(from);
  return sizeBytes;
}
