import { beforeAll, describe, expect, it } from '@jest/globals';
import { newId, randomSegment } from '@millrace/domain';
import { race, raceRounds, seedAccount, type SeededAccount } from '@millrace/testing';
import {
  beginCompletion,
  cancelUpload,
  createProject,
  deleteProject,
  expireUploads,
  finishCompletion,
  insertUpload,
  moveVideo,
  newPrefix,
} from './index.ts';
import { db, useDatabase } from './testing/database.ts';

/** What may end an upload comes at the same time: each race runs 200 times. */

let account: SeededAccount;
useDatabase();
beforeAll(async () => {
  account = await seedAccount(db);
});

interface OpenUpload {
  uploadId: string;
  videoId: string;
}
const token = (tokenId: string) => ({
  tokenId,
  bodyHash: Buffer.from('same'),
  maxBytes: 10,
  contentType: null,
});
const row = (tokenId?: string) => {
  const videoId = newId('vid');
  const prefix = newPrefix(videoId);
  return {
    ...{ id: newId('upl'), videoId, ...account, title: 'Raced', fileName: null, declaredBytes: 10 },
    ...{ contentType: 'video/mp4', prefix, objectKey: `${prefix}source`, storeUploadId: randomSegment() },
    ...{ partSizeBytes: 16, partCount: 1, token: tokenId === undefined ? null : token(tokenId) },
  };
};
async function open(): Promise<OpenUpload> {
  const upload = row();
  await db.transaction((tx) => insertUpload(tx, upload));
  return { uploadId: upload.id, videoId: upload.videoId };
}
const expiresIn = (uploadId: string, ms: number): Promise<unknown> =>
  db.query(`update uploads set expires_at = clock_timestamp() + $2 * interval '1 ms' where id = $1`, [
    uploadId,
    ms,
  ]);

/** Uploads that the store was asked to join, each time. */
let joins: string[] = [];
const joiner = {
  complete: ({ uploadId }: { uploadId: string }) => {
    joins.push(uploadId);
    return Promise.resolve({ etag: 'joined', sizeBytes: 10 });
  },
  head: () => Promise.resolve(null),
};
const joining = { parts: [{ partNumber: 1, etag: 'e' }], sizeBytes: 10 };
/** As the complete call does once it has found the parts right. */
const complete = (uploadId: string) => async (): Promise<string> => {
  const start = await db.transaction((tx) => beginCompletion(tx, uploadId, joining));
  return start.kind === 'begun' ? (await finishCompletion(db, joiner, start.completion)).kind : start.kind;
};
const cancel = (uploadId: string) => (): Promise<unknown> =>
  db.transaction((tx) => cancelUpload(tx, uploadId));
const remove = (videoId: string) => (): Promise<unknown> =>
  db.transaction((tx) => moveVideo(tx, videoId, { type: 'customer_delete' }, { deletedBy: 'customer' }));
/** As the reconciler does, again and again, until the upload is over. */
const expire = (uploadId: string) => async (): Promise<string> => {
  for (;;) {
    if ((await expireUploads(db)) > 0) return 'expired';
    const { rowCount } = await db.query(`select from uploads where id = $1 and state = 'open'`, [uploadId]);
    if (rowCount === 0) return 'none';
  }
};

interface End {
  state: string;
  status: string;
  deletedBy: string | null;
  jobs: number;
  running: number;
}
async function endOf({ uploadId }: OpenUpload): Promise<End> {
  const { rows } = await db.query<End>(
    `select u.state, v.status, v.deleted_by as "deletedBy",
       (select count(*) from encode_jobs j where j.video_id = v.id) as jobs,
       (select count(*) from encode_jobs j where j.video_id = v.id and j.state = 'running') as running
     from uploads u join videos v on v.id = u.video_id where u.id = $1`,
    [uploadId],
  );
  return rows[0] as End;
}
const gone = { status: 'uploading', jobs: 0, running: 0 };

describe('complete against cancel against expiry', () => {
  it('ends in exactly one of them, 200 times [UPL-236, UPL-237]', async () => {
    const winners = new Set<string>();
    for (let round = 0; round < raceRounds; round++) {
      const upload = await open();
      const { uploadId } = upload;
      // Over already, about to be, or so late that it is never first.
      await expiresIn(uploadId, [0, 3, 15, 60_000][round % 4] ?? 0);
      const sweeps = round % 4 === 3 ? [] : [expire(uploadId)];
      const contenders = [complete(uploadId), complete(uploadId), cancel(uploadId), ...sweeps];
      joins = [];
      const turn = round % contenders.length;
      const outcomes = (await race([...contenders.slice(turn), ...contenders.slice(0, turn)])).sort();
      const end = await endOf(upload);
      winners.add(end.state);
      const lost = sweeps.length === 0 ? [] : ['none'];
      switch (end.state) {
        case 'completed':
          expect(end).toMatchObject({ status: 'processing', deletedBy: null, jobs: 1, running: 1 });
          expect(outcomes.filter((each) => each !== 'wait' && each !== 'closed')).toEqual(
            ['accepted', 'upload_closed', ...lost].sort(),
          );
          expect(joins).toHaveLength(1);
          break;
        case 'cancelled':
          expect(end).toMatchObject({ ...gone, deletedBy: 'cancel' });
          expect(outcomes).toEqual(['closed', 'closed', 'ok', ...lost].sort());
          break;
        default:
          expect(end).toMatchObject({ ...gone, state: 'expired', deletedBy: 'expiry' });
          expect(outcomes).toEqual(['closed', 'closed', 'expired', 'upload_closed']);
      }
      if (end.state !== 'completed') expect(joins).toEqual([]);
    }
    expect([...winners].sort()).toEqual(['cancelled', 'completed', 'expired']);
  });
});

describe('complete against the deletion of the video', () => {
  it('leaves no video and no encode, 200 times [VID-111, VID-117]', async () => {
    for (let round = 0; round < raceRounds; round++) {
      const upload = await open();
      const contenders = [complete(upload.uploadId), remove(upload.videoId)];
      const outcomes = await race(round % 2 === 0 ? contenders : contenders.toReversed());
      expect(outcomes).toContain('ok');
      expect(outcomes.some((each) => ['accepted', 'superseded', 'closed'].includes(each))).toBe(true);
      expect(await endOf(upload)).toMatchObject({ deletedBy: 'customer', running: 0 });
    }
  });
});

describe('start against the deletion of the project', () => {
  it('leaves no upload in a project that is gone, 200 times [PRJ-208]', async () => {
    const { accountId } = account;
    for (let round = 0; round < raceRounds; round++) {
      const { id: projectId } = await db.transaction((tx) =>
        createProject(tx, { accountId, name: 'Raced', now: new Date() }),
      );
      const start = () => db.transaction((tx) => insertUpload(tx, { ...row(), projectId }));
      const remove = () =>
        db.transaction((tx) => deleteProject(tx, { accountId, projectId, now: new Date() }));
      const outcomes = await race(round % 2 === 0 ? [start, remove] : [remove, start]);
      expect(['not_found ok', 'ok project_not_empty']).toContain(outcomes.sort().join(' '));
      const { rows } = await db.query(
        `select p.deleted_at is null as alive, (select count(*) from videos v where v.project_id = p.id) as videos
         from projects p where p.id = $1`,
        [projectId],
      );
      expect(rows).toEqual([
        outcomes.includes('not_found') ? { alive: false, videos: 0 } : { alive: true, videos: 1 },
      ]);
    }
  });
});

describe('an upload token', () => {
  it('spent by three at once starts one upload, 200 times [UPT-215]', async () => {
    for (let round = 0; round < raceRounds; round++) {
      const tokenId = randomSegment();
      const spend = () => db.transaction((tx) => insertUpload(tx, row(tokenId)));
      // 23505: what the index says to those that come second.
      expect((await race([spend, spend, spend])).sort()).toEqual(['23505', '23505', 'ok']);
      const { rowCount } = await db.query('select from uploads where token_id = $1', [tokenId]);
      expect(rowCount).toBe(1);
    }
    const { rows } = await db.query(
      `select count(*) as videos from videos v where not exists (select from uploads u where u.video_id = v.id)`,
    );
    expect(rows).toEqual([{ videos: 0 }]);
  });
});
