import { fileURLToPath } from 'node:url';
import { waitFor } from '@millrace/testing';
import { type Customer } from '../../../e2e/src/demo/customer.ts';
import { uploadFile } from '../../../e2e/src/demo/upload.ts';
import { type BenchStack } from './bench-stack.ts';

const clip = fileURLToPath(new URL('../../../packages/testing/media/short_0_2s.mp4', import.meta.url));
const patienceMs = 5 * 60_000;

/** Uploads a clip of a fifth of a second, and waits until it plays. */
export async function uploadClip(customer: Customer): Promise<string> {
  const { video } = await uploadFile(customer, clip);
  const { client, projectId } = customer;
  const status = await waitFor(
    async () => {
      const { status } = await client.getVideo({ projectId, videoId: video.id });
      return status === 'uploading' || status === 'processing' ? null : status;
    },
    { timeoutMs: patienceMs, what: 'the encode of a clip' },
  );
  if (status !== 'ready') throw new Error(`the clip is ${status}`);
  return video.id;
}

/** So many clips of the stack's customer, which play; those that were uploaded before come first. */
export async function clipsOf(stack: BenchStack, count: number): Promise<string[]> {
  const customer = await stack.customer();
  const more = Array.from({ length: Math.max(0, count - stack.clips.length) }, () => uploadClip(customer));
  stack.clips.push(...(await Promise.all(more)));
  return stack.clips.slice(0, count);
}
