import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ObjectStoreError } from '@millrace/objects';
import {
  abandonedCompletions,
  beginCompletion,
  expireUploads,
  findUpload,
  finishCompletion,
  resolveCompleting,
  resumeCompletion,
} from '@millrace/store';
import { describeWith } from '../../../../dev/real-part.ts';
import { missingForS3 } from '../../../../dev/s3/versitygw.ts';
import { openS3Store } from '../testing/s3-store.ts';
import { type Answer, createTenant, type Tenant } from '../testing/test-api.ts';
import {
  cancel,
  complete,
  createUploadBench,
  eventsOf,
  MiB,
  nothing,
  put,
  resume,
  rowsOf,
  sent,
  type UploadBench,
} from '../testing/upload-bench.ts';

/** The process ends there: nothing that it would have done after happens, its lease runs on. */
class Death extends Error {}
const die = (): never => {
  throw new Death('the process died here');
};
const unreachable = (): never => {
  throw new ObjectStoreError('unavailable', 'no connection to the store');
};

let bench: UploadBench;
let me: Tenant;

const live = (): void => {
  bench.hooks.beforeComplete = () => undefined;
  bench.hooks.afterComplete = () => undefined;
};
const outcome = ({ status, problem }: Answer): string =>
  status < 400 ? String(status) : `${status} ${problem.code}`;
const completed = { ...nothing, videos: 1, uploads: 1, prefixes: 1, jobs: 1 };
const stateOf = async (uploadId: string): Promise<string | undefined> =>
  (await findUpload(bench.api.store, me.projectId, uploadId))?.state;
const leaseEnds = (uploadId: string): Promise<unknown> =>
  bench.api.store.query('update uploads set completing_until = clock_timestamp() where id = $1', [uploadId]);
const resolve = (uploadId: string) => resolveCompleting(bench.api.store, bench.objects, uploadId);

/** The two moments at which a lost process leaves the outcome unknown, and what the store then holds. */
const deaths: [string, () => void][] = [
  ['before the store joined the parts', () => (bench.hooks.beforeComplete = die)],
  ['after the store joined the parts', () => (bench.hooks.afterComplete = die)],
];

/** Stores tell of a lost completion differently: S3 answers a repeated call like the first for a while. */
const stores = [
  { name: 'a folder', missing: null, open: undefined },
  { name: 'an S3 API', missing: missingForS3(), open: () => openS3Store({ pageSize: 2 }) },
];

for (const { name, missing, open } of stores)
  describeWith(missing, `completing on ${name}`, () => {
    beforeAll(async () => {
      bench = await createUploadBench(open);
    }, 900_000);
    afterAll(() => bench.close());
    beforeEach(async () => {
      live();
      me = await createTenant(bench.api);
    });

    describe.each(deaths)('a process lost %s', (_when, dies) => {
      it('is made up for by the reconciler', async () => {
        const { upload, parts } = await sent(bench, me, [5 * MiB, 9]);
        dies();
        expect(outcome(await complete(bench, me, upload.id, parts))).toBe('500 internal_error');
        live();
        expect(await stateOf(upload.id)).toBe('completing');
        expect(await abandonedCompletions(bench.api.store)).not.toContain(upload.id);
        expect(await resolve(upload.id)).toBeNull();
        await leaseEnds(upload.id);
        expect(await abandonedCompletions(bench.api.store)).toContain(upload.id);
        expect(await resolve(upload.id)).toMatchObject({ kind: 'accepted', video: { status: 'processing' } });
        expect(await resolve(upload.id)).toBeNull();
        expect(await rowsOf(bench, me)).toEqual(completed);
        expect(outcome(await complete(bench, me, upload.id, parts))).toBe('409 upload_closed');
      });

      it('is made up for by the customer’s own retry, which gets the video', async () => {
        const { upload, parts } = await sent(bench, me, [5 * MiB, 9]);
        dies();
        await complete(bench, me, upload.id, parts);
        live();
        await leaseEnds(upload.id);
        const retry = await complete(bench, me, upload.id, parts);
        expect(retry.body).toMatchObject({
          id: upload.video.id,
          status: 'processing',
          sizeBytes: 5 * MiB + 9,
        });
        expect(await rowsOf(bench, me)).toEqual(completed);
      });

      it('is waited for by a retry that comes while its lease lasts', async () => {
        const { upload, parts } = await sent(bench, me);
        dies();
        await complete(bench, me, upload.id, parts);
        live();
        await bench.api.store.query(
          `update uploads set completing_until = clock_timestamp() + interval '300 milliseconds' where id = $1`,
          [upload.id],
        );
        expect(outcome(await complete(bench, me, upload.id, parts))).toBe('200');
        expect(await rowsOf(bench, me)).toEqual(completed);
      });

      it('is made up for once, however many come next at the same time', async () => {
        const { upload, parts } = await sent(bench, me);
        dies();
        await complete(bench, me, upload.id, parts);
        live();
        await leaseEnds(upload.id);
        const [retries, resolved] = await Promise.all([
          Promise.all([1, 2, 3].map(() => complete(bench, me, upload.id, parts))),
          Promise.all([1, 2].map(() => resolve(upload.id))),
        ]);
        const wins = retries.filter((answer) => answer.status === 200).length;
        expect(wins + resolved.filter((each) => each?.kind === 'accepted').length).toBe(1);
        expect(await rowsOf(bench, me)).toEqual(completed);
      });

      it('closes the upload to cancel, resume and expiry until it is resolved', async () => {
        const { upload, parts } = await sent(bench, me);
        dies();
        await complete(bench, me, upload.id, parts);
        live();
        await bench.api.store.query(`update uploads set expires_at = clock_timestamp() where id = $1`, [
          upload.id,
        ]);
        expect(outcome(await cancel(bench, me, upload.id))).toBe('409 upload_closed');
        expect(outcome(await resume(bench, me, upload.id))).toBe('409 upload_closed');
        expect(await expireUploads(bench.api.store)).toBe(0);
        await leaseEnds(upload.id);
        expect(await resolve(upload.id)).toMatchObject({ kind: 'accepted' });
      });

      it('leaves nothing to do when the video is deleted meanwhile', async () => {
        const { upload, parts } = await sent(bench, me);
        dies();
        await complete(bench, me, upload.id, parts);
        live();
        await leaseEnds(upload.id);
        const path = `/v1/projects/${me.projectId}/videos/${upload.video.id}`;
        expect((await bench.api.ask(`DELETE ${path}`, { bearer: me.full })).status).toBe(204);
        expect(await resolve(upload.id)).toBeNull();
        expect(await stateOf(upload.id)).toBe('cancelled');
        expect(outcome(await complete(bench, me, upload.id, parts))).toBe('409 upload_closed');
        expect(await rowsOf(bench, me)).toMatchObject({ jobs: 0, events: 0 });
      });
    });

    describe('a completion that began with other parts', () => {
      it('is ended by a retry, which did not win it', async () => {
        const { upload, parts } = await sent(bench, me);
        bench.hooks.afterComplete = die;
        await complete(bench, me, upload.id, parts);
        live();
        await leaseEnds(upload.id);
        const others = [{ partNumber: 1, etag: '"00000000000000000000000000000000"' }];
        expect(outcome(await complete(bench, me, upload.id, others))).toBe('409 upload_closed');
        expect(await stateOf(upload.id)).toBe('completed');
      });

      it('is undone when the store refuses them; the retry then names its own', async () => {
        const { upload, parts } = await sent(bench, me);
        bench.hooks.beforeComplete = die;
        await complete(bench, me, upload.id, parts);
        live();
        const changed = await put(upload, 1, Buffer.from('other bytes'));
        await leaseEnds(upload.id);
        expect(outcome(await complete(bench, me, upload.id, [changed]))).toBe('200');
        expect(await rowsOf(bench, me)).toEqual(completed);
      });
    });

    describe('a store that cannot be reached', () => {
      it.each<[string, () => void]>([
        ['before joining', () => (bench.hooks.beforeComplete = unreachable)],
        ['after joining, its answer lost', () => (bench.hooks.afterComplete = unreachable)],
      ])('%s is 503, and the next call succeeds at once', async (_when, fails) => {
        const { upload, parts } = await sent(bench, me);
        fails();
        const refused = await complete(bench, me, upload.id, parts);
        expect(outcome(refused)).toBe('503 service_unavailable');
        expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
        live();
        expect(outcome(await complete(bench, me, upload.id, parts))).toBe('200');
        expect(await rowsOf(bench, me)).toEqual(completed);
      });

      it('makes the reconciler try again later', async () => {
        const { upload, parts } = await sent(bench, me);
        bench.hooks.beforeComplete = unreachable;
        await complete(bench, me, upload.id, parts);
        await expect(resolve(upload.id)).rejects.toMatchObject({ code: 'unavailable' });
        expect(await abandonedCompletions(bench.api.store)).toContain(upload.id);
        live();
        expect(await resolve(upload.id)).toMatchObject({ kind: 'accepted' });
      });
    });

    describe('parts that are gone from the store', () => {
      it('fail the video honestly, instead of leaving it open for ever', async () => {
        const { upload, parts } = await sent(bench, me);
        const { rows } = await bench.api.store.query<{ key: string; uploadId: string }>(
          'select object_key as key, store_upload_id as "uploadId" from uploads where id = $1',
          [upload.id],
        );
        for (const row of rows) await bench.objects.abort(row);
        expect(outcome(await complete(bench, me, upload.id, parts))).toBe('409 upload_closed');
        const { body } = await bench.api.ask(`GET /v1/projects/${me.projectId}/videos/${upload.video.id}`, {
          bearer: me.full,
        });
        expect(body).toMatchObject({ status: 'failed', failure: { code: 'encoding_failed' } });
        expect(await eventsOf(bench, upload.video.id)).toEqual(['video.failed']);
      });
    });

    describe('an object of other parts than those on record', () => {
      it('is not taken for the customer’s, though it has the same size', async () => {
        const { upload, parts } = await sent(bench, me);
        bench.hooks.beforeComplete = die;
        await complete(bench, me, upload.id, parts);
        live();
        const changed = await put(upload, 1, Buffer.alloc(1_000, 9));
        const row = await findUpload(bench.api.store, me.projectId, upload.id);
        await bench.objects.complete({
          key: row?.objectKey ?? '',
          uploadId: row?.storeUploadId ?? '',
          parts: [changed],
        });
        await leaseEnds(upload.id);
        expect(await resolve(upload.id)).toEqual({ kind: 'lost' });
        expect(await stateOf(upload.id)).toBe('failed');
      });
    });

    describe('an upload that a restored record has as open, and whose parts were joined', () => {
      const joinedUnheard = async () => {
        const { upload, parts } = await sent(bench, me, [5 * MiB, 9]);
        const row = await findUpload(bench.api.store, me.projectId, upload.id);
        await bench.objects.complete({
          key: row?.objectKey ?? '',
          uploadId: row?.storeUploadId ?? '',
          parts,
        });
        return { upload, parts };
      };

      it('is completed by its owner’s next call, with the size that the object has [UPL-230]', async () => {
        const { upload, parts } = await joinedUnheard();
        const { body } = await complete(bench, me, upload.id, parts.toReversed());
        expect(body).toMatchObject({ id: upload.video.id, status: 'processing', sizeBytes: 5 * MiB + 9 });
        expect(await rowsOf(bench, me)).toEqual(completed);
        expect(outcome(await complete(bench, me, upload.id, parts))).toBe('409 upload_closed');
      });

      it('stays open when other parts are named [UPL-233]', async () => {
        const { upload, parts } = await joinedUnheard();
        const [first, second] = parts.map(({ etag }) => etag);
        const others = [
          [
            { partNumber: 1, etag: second ?? '' },
            { partNumber: 2, etag: first ?? '' },
          ],
          parts.slice(0, 1),
          parts.slice(1),
          [{ partNumber: 1, etag: 'no digest' }],
        ];
        for (const named of others)
          expect(outcome(await complete(bench, me, upload.id, named))).toBe('400 invalid_parts');
        expect(await stateOf(upload.id)).toBe('open');
        expect(outcome(await complete(bench, me, upload.id, parts))).toBe('200');
      });
    });

    describe('an object whose ETag is no digest', () => {
      it.each([
        ['is taken by its size', { opaqueEtag: true as const }, 'accepted'],
        ['is not, where ETags are digests', {}, 'lost'],
      ])('%s', async (_what, opaque, kind) => {
        const { upload, parts } = await sent(bench, me);
        const held = { parts, sizeBytes: 1_000 };
        const begun = await bench.api.store.transaction((tx) => beginCompletion(tx, upload.id, held));
        if (begun.kind !== 'begun') throw new Error('it did not begin');
        const joined = {
          complete: () => Promise.reject(new ObjectStoreError('no_such_upload', 'it was joined, unheard')),
          head: () => Promise.resolve({ etag: '"opaque-1"', sizeBytes: 1_000, ...opaque }),
        };
        expect(await finishCompletion(bench.api.store, joined, begun.completion)).toMatchObject({ kind });
      });
    });

    describe('an attempt that was taken over', () => {
      it('records nothing, whatever it learns', async () => {
        const { upload, parts } = await sent(bench, me);
        let goOn = (): void => undefined;
        const paused = new Promise<void>((reached) => {
          bench.hooks.afterComplete = () => {
            bench.hooks.afterComplete = () => undefined;
            reached();
            return new Promise((resume) => (goOn = resume));
          };
        });
        const slow = complete(bench, me, upload.id, parts);
        await paused;
        await leaseEnds(upload.id);
        expect(await resolve(upload.id)).toMatchObject({ kind: 'accepted' });
        goOn();
        expect(outcome(await slow)).toBe('409 upload_closed');
        expect(await rowsOf(bench, me)).toEqual(completed);
      });

      it('does not reopen the upload under the one that took over', async () => {
        const { upload, parts } = await sent(bench, me);
        const { store } = bench.api;
        const held = { parts, sizeBytes: 1_000 };
        const late = await store.transaction((tx) => beginCompletion(tx, upload.id, held));
        await leaseEnds(upload.id);
        const taker = await store.transaction((tx) => resumeCompletion(tx, upload.id));
        if (late.kind !== 'begun' || taker.kind !== 'begun') throw new Error('neither began');
        const refusing = {
          complete: () => Promise.reject(new ObjectStoreError('invalid_part', 'refused, and heard too late')),
          head: () => Promise.resolve(null),
        };
        expect(await finishCompletion(store, refusing, late.completion)).toEqual({ kind: 'superseded' });
        expect(await stateOf(upload.id)).toBe('completing');
        expect(await finishCompletion(store, bench.objects, taker.completion)).toMatchObject({
          kind: 'accepted',
        });
        expect(await rowsOf(bench, me)).toEqual(completed);
      });
    });
  });
