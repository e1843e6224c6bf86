import { deliveryIndex, type DeliveryIndex } from '@millrace/contract';
import { finishPoster, type FinishOutcome } from '@millrace/store';
import { replacedPrefixes, withFiles } from '../assemble/replace-files.ts';
import { patiently } from '../work/patience.ts';
import { sourceTrouble, wrongOutput } from '../work/trouble.ts';
import { patience, type TaskContext } from './context.ts';
import { type Making, repeatable, withSource } from './making.ts';
import { type MediaOutput } from './outputs.ts';
import { chosenPlaces, momentPlaces, takePoster } from './pictures.ts';
import { storeOutputs } from './store-outputs.ts';

/**
 * Makes the poster of a video that plays anew (ADR 15): takes the picture, stores it beside a new delivery index,
 * which is the old one but for its poster, and switches the record to that.
 */
export const posterTask = (context: TaskContext): Promise<FinishOutcome> => withSource(context, renew);

async function renew(making: Making): Promise<FinishOutcome> {
  const { context, manifest, options } = making;
  const { task, job, store, objects, clock, signal } = context;
  const startedAt = clock.now().getTime();
  const { posterAtSeconds } = job;
  const { command, made } = await takePoster(
    making,
    posterAtSeconds === null ? chosenPlaces(manifest) : momentPlaces(manifest, posterAtSeconds),
  );
  if (!made) throw sourceTrouble({ code: 'invalid_file', message: noPicture }, 'no picture');
  const { outputs } = command;
  const folder = options.outputDir;
  const { prefix, ...stored } = await storeOutputs(context, { manifest, folder, outputs });

  if (job.indexKey === null) throw wrongOutput('the video has no delivery index');
  const before = { key: job.indexKey, index: await readIndex(context, job.indexKey) };
  const after = { key: `${prefix}index.json`, index: withFiles(before.index, stored.files) };
  const body = Buffer.from(JSON.stringify(after.index));
  await patiently(patience(context), () => objects.put(after.key, body, { signal }));

  const output: MediaOutput = { ...stored, posterAtSeconds, args: repeatable(command, options) };
  const seconds = (clock.now().getTime() - startedAt) / 1000;
  const bytes = stored.files.reduce((sum, file) => sum + file.bytes, 0);
  const replaced = replacedPrefixes(before, after);
  const poster = { prefix, indexKey: after.key, output, replaced, report: { seconds, bytes } };
  return patiently(patience(context), () => finishPoster(store, task, poster));
}

const noPicture =
  'No picture could be taken at the moment that was chosen for the poster, which stays as it was. Choose another.';

const readIndex = (context: TaskContext, key: string): Promise<DeliveryIndex> =>
  patiently(patience(context), async () => {
    const { stream } = await context.objects.get(key, { signal: context.signal });
    const chunks = (await stream.toArray()) as Buffer[];
    return deliveryIndex.parse(JSON.parse(Buffer.concat(chunks).toString()));
  });
