import { type FailureCode, type Quality, type VideoStatus } from '@millrace/contract';
import { newId } from '@millrace/domain';
import { createEncodeJob, type Database, moveVideo } from '@millrace/store';
import { type Tenant } from './test-api.ts';

export interface VideoSeed {
  status?: Exclude<VideoStatus, 'held'>;
  title?: string;
  qualities?: readonly Quality[];
  durationMs?: number;
  failureCode?: FailureCode;
  createdAt?: Date;
}

/**
 * A video brought to a state by the record's own moves, without an upload: `uploading` has no upload row,
 * `processing` has a job, `ready` has one that is over.
 */
export async function seedVideo(
  store: Database,
  tenant: Pick<Tenant, 'projectId' | 'accountId'>,
  seed: VideoSeed = {},
): Promise<string> {
  const { status = 'ready', title = 'Seeded', createdAt = new Date() } = seed;
  const { projectId, accountId } = tenant;
  const videoId = newId('vid', createdAt);
  await store.query(
    `insert into videos (id, project_id, account_id, title, status, size_bytes, source_key, created_at, updated_at)
     values ($1, $2, $3, $4, 'uploading', 1000, $5, $6, $6)`,
    [videoId, projectId, accountId, title, `videos/${videoId}/original/source`, createdAt],
  );
  await store.query(
    `insert into object_prefixes (prefix, video_id, kind, created_at) values ($1, $2, 'source', now())`,
    [`videos/${videoId}/original/`, videoId],
  );
  if (status === 'uploading') return videoId;
  await store.transaction(async (tx) => {
    await createEncodeJob(tx, { videoId, accountId });
    await moveVideo(tx, videoId, { type: 'complete_accepted' });
  });
  if (status === 'failed') await failEncode(store, videoId, seed.failureCode);
  if (status === 'ready') await finishEncode(store, videoId, seed);
  return videoId;
}

/** What the assembler's last transaction does to the video. */
export async function finishEncode(store: Database, videoId: string, seed: VideoSeed = {}): Promise<void> {
  const { qualities = ['360p', '720p'], durationMs = 10_000 } = seed;
  const changes = { indexKey: `videos/${videoId}/encode/index.json`, qualities, durationMs };
  await store.transaction((tx) => moveVideo(tx, videoId, { type: 'encoding_finished' }, { changes }));
}

/** What the encoder does to a video that it cannot encode. */
export async function failEncode(
  store: Database,
  videoId: string,
  code: FailureCode = 'invalid_file',
): Promise<void> {
  const failure = { code, message: 'It failed.' };
  await store.transaction((tx) => moveVideo(tx, videoId, { type: 'encoding_failed', failure }));
}
