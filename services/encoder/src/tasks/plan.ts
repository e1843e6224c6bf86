import {
  buildProbe,
  classifyHead,
  createPacketScan,
  type EncodeManifest,
  needsLongerSample,
  planEncode,
  probeArgs,
  type ProbeHeader,
  readProbeHeader,
  samplePackets,
  scanArgs,
  sniffBytes,
  sniffContainer,
  type SourceContainer,
  type SourceFailure,
  type SourceProbe,
  unreadable,
} from '@millrace/domain';
import { type FinishOutcome, finishPlan } from '@millrace/store';
import { EncoderProcessError, type ProcessLimits } from '../process/encoder-process.ts';
import { type OpenSource } from '../source/block-reader.ts';
import { patiently } from '../work/patience.ts';
import { sourceTrouble, type TaskTroubleError } from '../work/trouble.ts';
import { limitsFor, patience, sourceKeyOf, type TaskContext } from './context.ts';
import { assertWhole } from './run-ffmpeg.ts';

/** Text of a probe that is kept: a day of packets at 240 a second takes about a gigabyte, read as it comes. */
const scanBytes = 2 * 1024 ** 3;
const headerBytes = 64 * 1024 ** 2;
/** A scan reads the whole file: as long as that takes of a slow object store, in bytes a millisecond. */
const slowestRead = 10_000;

/**
 * Looks at the original, plans its encode and records the plan: what the bytes are, what ffprobe sees of the
 * streams, when every packet is shown, and what the account's plan allows.
 */
export async function planTask(context: TaskContext): Promise<FinishOutcome | 'over_limit'> {
  const { job, task, store, reader, scratch } = context;
  const source = await reader.open(sourceKeyOf(context));
  const folder = await scratch.open();
  try {
    const container = await sniff(context, source);
    const probe = await probeSource(context, source, container, folder.path);
    const planned = planEncode(probe, {
      maxQuality: job.maxQuality,
      chunkSeconds: context.config.ENCODER_CHUNK_SECONDS ?? null,
    });
    if (!planned.ok) throw blame(planned);
    const { manifest } = planned;
    const report = { source: sourceReport(source, probe, manifest), notes: manifest.notes };
    return await patiently(patience(context), () =>
      finishPlan(store, task, {
        manifest,
        plannerVersion: Number(/\d+$/.exec(manifest.planner)?.[0] ?? 0),
        durationMs: Math.round(manifest.durationSeconds * 1000),
        tasks: manifest.tasks,
        report,
      }),
    );
  } finally {
    source.close();
    await folder.remove();
  }
}

const blame = (failure: SourceFailure): TaskTroubleError =>
  sourceTrouble({ code: failure.code, message: failure.message }, failure.kind);

async function sniff(context: TaskContext, source: OpenSource): Promise<SourceContainer> {
  const { job, objects, signal } = context;
  const head = await patiently(patience(context), async () => {
    if (source.sizeBytes === 0) return Buffer.alloc(0);
    const { stream } = await objects.get(sourceKeyOf(context), {
      range: { start: 0, end: sniffBytes - 1 },
      signal,
    });
    return Buffer.concat((await stream.toArray()) as Buffer[]);
  });
  const sniffed = sniffContainer(head);
  const failure = classifyHead(sniffed, job.boundContentType === null ? [] : [job.boundContentType]);
  if (failure !== null) throw blame(failure);
  if (sniffed.kind !== 'video') throw new Error(`no verdict on a ${sniffed.kind}`);
  return sniffed.container;
}

async function probeSource(
  context: TaskContext,
  source: OpenSource,
  container: SourceContainer,
  outputFolder: string,
): Promise<SourceProbe> {
  const limits = limitsFor(context, {
    outputFolder,
    workMs: source.sizeBytes / slowestRead,
    outputBytes: headerBytes,
  });
  let header = await probeHeader(context, source, limits, samplePackets.first);
  if (needsLongerSample(header)) header = await probeHeader(context, source, limits, samplePackets.longer);
  const scan = createPacketScan(container, header);
  await ffprobe(context, source, scanArgs(source.url), {
    limits: { ...limits, outputBytes: scanBytes },
    onText: (text) => scan.write(text),
  });
  return buildProbe(container, header, scan.end());
}

async function probeHeader(
  context: TaskContext,
  source: OpenSource,
  limits: ProcessLimits,
  packets: number,
): Promise<ProbeHeader> {
  let text = '';
  const stderr = await ffprobe(context, source, probeArgs(source.url, packets), {
    limits,
    onText: (piece) => {
      text += piece;
    },
  });
  try {
    return readProbeHeader(text);
  } catch {
    // It ended well without a word about the file: it could not make sense of it.
    throw blame(unreadable(stderr));
  }
}

async function ffprobe(
  { probe, signal }: TaskContext,
  source: OpenSource,
  args: readonly string[],
  { limits, onText }: { limits: ProcessLimits; onText: (text: string) => void },
): Promise<string> {
  try {
    const { stderr } = await probe.run(args, limits, {
      onText,
      signal,
      inputPosition: () => source.servedBytes(),
    });
    assertWhole(source);
    return stderr;
  } catch (error) {
    assertWhole(source);
    if (error instanceof EncoderProcessError && error.end === 'exit') throw blame(unreadable(error.stderr));
    throw error;
  }
}

function sourceReport(source: OpenSource, probe: SourceProbe, manifest: EncodeManifest): object {
  return {
    container: probe.container,
    sizeBytes: source.sizeBytes,
    etag: source.etag,
    durationSeconds: manifest.durationSeconds,
    frameRate: manifest.frameRate.join('/'),
    video: probe.video.map(({ index, codec, width, height, pixelFormat, fieldOrder, colour, times }) => ({
      ...{ index, codec, width, height, pixelFormat, fieldOrder, colour },
      packets: times.packets,
    })),
    audio: probe.audio.map(({ index, codec, channels, layout, sampleRate, language, times }) => ({
      ...{ index, codec, channels, layout, sampleRate, language },
      packets: times.packets,
    })),
  };
}
