import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type Captions,
  type CaptionsPlaybackState,
  type PlaybackStateResponse,
  type Video,
  videoStatuses,
} from '@millrace/contract';
import { createHoldCommands, doomedPrefixes } from '@millrace/store';
import { createTestObjects, type TestObjects } from '@millrace/testing';
import { finishEncode, seedVideo } from '../testing/seed-video.ts';
import {
  type Answer,
  createTenant,
  createTestApi,
  internalSecret,
  type Tenant,
  type TestApi,
} from '../testing/test-api.ts';

let api: TestApi;
let objects: TestObjects;
let me: Tenant;
let videoId: string;

beforeAll(async () => {
  objects = await createTestObjects();
  api = await createTestApi({ objects: objects.objects });
});
afterAll(async () => {
  await api.close();
  await objects.close();
});
beforeEach(async () => {
  objects.interfere = null;
  me = await createTenant(api);
  videoId = await seedVideo(api.store, me);
});

const vtt = 'WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n';
const path = (language?: string, id = videoId): string =>
  `/v1/projects/${me.projectId}/videos/${id}/captions${language === undefined ? '' : `/${language}`}`;
const outcome = ({ status, problem }: Answer): string =>
  status < 400 ? String(status) : `${status} ${problem.code}`;
const put = (language: string, body = vtt, id?: string): Promise<Answer<Captions>> =>
  api.ask<Captions>(`PUT ${path(language, id)}`, { bearer: me.full, body });
const remove = (language: string): Promise<Answer> =>
  api.ask(`DELETE ${path(language)}`, { bearer: me.full });
const list = (): Promise<Answer<{ data: Captions[] }>> =>
  api.ask<{ data: Captions[] }>(`GET ${path()}`, { bearer: me.full });
const languages = async (): Promise<string[]> => (await list()).body.data.map(({ language }) => language);
const video = async (): Promise<Video> =>
  (await api.ask<Video>(`GET ${path().replace('/captions', '')}`, { bearer: me.full })).body;

/** What a CDN process reads, and what the last message told it; the same, or the test fails. */
async function known(): Promise<CaptionsPlaybackState[]> {
  const read = await api.ask<PlaybackStateResponse>(`GET internal:/internal/playback-state/${videoId}`, {
    headers: { 'x-internal-secret': internalSecret },
  });
  const { rows } = await api.store.query<{ state: unknown }>(
    `select value -> 'state' as state from outbox where key = $1 and value ->> 'kind' = 'video' order by id desc limit 1`,
    [videoId],
  );
  expect(rows[0]?.state).toEqual(read.body.video);
  return read.body.video?.captions ?? [];
}

/** Prefixes of captions by what becomes of them. */
async function prefixes(): Promise<string[]> {
  const { rows } = await api.store.query<{ fate: string }>(
    `select case when delete_after is null then 'kept' when delete_after <= now() then 'doomed' else 'waits' end as fate
     from object_prefixes where video_id = $1 and kind = 'captions' order by created_at`,
    [videoId],
  );
  return rows.map(({ fate }) => fate);
}

describe('putting captions', () => {
  it('keeps the file as WebVTT, lists its language and tells the CDN [CAP-201, CAP-204, CAP-214]', async () => {
    const before = await video();
    const { status, body } = await put('pt-br', '1\n00:00:01,000 --> 00:00:02,000\nOlá\n');
    expect(status).toBe(200);
    const time = expect.stringMatching(/^\d{4}-.*Z$/);
    expect(body).toEqual({
      language: 'pt-BR',
      name: 'português (Brasil)',
      createdAt: time,
      updatedAt: body.createdAt,
    });
    await put('en');
    expect((await list()).body.data).toEqual([expect.objectContaining({ language: 'en' }), body]);
    const [, state] = await known();
    expect(state).toMatchObject({ language: 'pt-BR', name: body.name });
    const file = await objects.read(state?.key ?? '');
    expect(file.toString()).toMatch(/^WEBVTT\n.*\n\n00:00:01.000 --> 00:00:02.000\nOlá\n$/);
    expect(state?.bytes).toBe(file.length);
    expect(state?.key).toMatch(new RegExp(`^videos/${videoId}/[^/]{20,}/pt-BR\\.vtt$`));
    expect(Date.parse((await video()).updatedAt)).toBeGreaterThan(Date.parse(before.updatedAt));
  });

  it('takes the file whatever it is called, from a session too [CAP-207]', async () => {
    for (const type of ['text/vtt', 'application/x-subrip', 'application/octet-stream']) {
      const answer = await api.ask(`PUT ${path('en')}`, {
        cookie: me.cookie,
        headers: { 'content-type': type },
        body: vtt,
      });
      expect(outcome(answer)).toBe('200');
    }
  });

  it('replaces what the language had, which goes when nobody plays it any more [CAP-209]', async () => {
    const first = (await put('en')).body;
    const [old] = await known();
    const second = (await put('EN', vtt.replace('Hello', 'Bye'))).body;
    expect(second.createdAt).toBe(first.createdAt);
    expect(Date.parse(second.updatedAt)).toBeGreaterThan(Date.parse(first.updatedAt));
    const [state] = await known();
    expect(state?.key).not.toBe(old?.key);
    expect((await objects.read(state?.key ?? '')).toString()).toContain('Bye');
    expect(await languages()).toEqual(['en']);
    expect(await prefixes()).toEqual(['waits', 'kept']);
  });

  it.each<[string, string, string]>([
    ['prose', 'Hello there\n', 'line 1'],
    ['nothing', '', 'no cue'],
    ['a script', `${vtt}<script>alert(1)</script>`, 'line 5'],
    ['NUL', `${vtt}\0`, 'line 5'],
    ['too much', 'x'.repeat(1024 * 1024 + 1), 'larger than 1048576 bytes'],
  ])('refuses %s with a reason, and keeps nothing [CAP-202, CAP-208]', async (_what, body, reason) => {
    const answer = await put('en', body);
    expect(outcome(answer)).toBe('400 invalid_request');
    expect(answer.problem.errors?.[0]?.path).toBe('body');
    expect(answer.problem.errors?.[0]?.message).toContain(reason);
    expect([await languages(), await prefixes()]).toEqual([[], []]);
  });

  it('takes a file of 1 MiB [CAP-208]', async () => {
    const body = vtt + 'x'.repeat(1024 * 1024 - vtt.length);
    expect(outcome(await put('en', body))).toBe('200');
  });

  it('refuses a compressed body', async () => {
    const headers = { 'content-encoding': 'gzip' };
    const answer = await api.ask(`PUT ${path('en')}`, { bearer: me.full, headers, body: vtt });
    expect(outcome(answer)).toBe('415 unsupported_media_type');
  });

  it.each(['e', 'en_US', 'und', '%C3%A9n', 'a'.repeat(200)])(
    'refuses the language %s [CAP-203]',
    async (language) => {
      for (const answer of [await put(language), await remove(language)]) {
        expect(outcome(answer)).toBe('400 invalid_request');
        expect(answer.problem.errors?.[0]?.path).toBe('language');
      }
    },
  );

  it.each(videoStatuses)('of a video that is %s [CAP-211]', async (status) => {
    videoId = await seedVideo(api.store, me, { status: status === 'held' ? 'ready' : status });
    if (status === 'held') await hold(false);
    expect(outcome(await put('en'))).toBe(status === 'failed' ? '409 invalid_video_state' : '200');
    expect(await prefixes()).toEqual(status === 'failed' ? [] : ['kept']);
  });

  it('before the video is encoded is known once it plays', async () => {
    videoId = await seedVideo(api.store, me, { status: 'processing' });
    await put('en');
    await finishEncode(api.store, videoId);
    expect(await known()).toEqual([expect.objectContaining({ language: 'en' })]);
  });

  it('in more than 50 languages is refused, in one of them again is not [CAP-212]', async () => {
    await api.store.query(
      `with p as (insert into object_prefixes (prefix, video_id, kind, created_at)
         select 'p' || n || '/', $1, 'captions', now() from generate_series(1, 49) n returning prefix)
       insert into captions (video_id, language, name, prefix, bytes, created_at, updated_at)
       select $1, 'q' || prefix, 'n', prefix, 1, now(), now() from p`,
      [videoId],
    );
    expect(outcome(await put('en'))).toBe('200');
    expect(outcome(await put('fr'))).toBe('403 plan_limit_reached');
    expect(outcome(await put('en'))).toBe('200');
    expect(await languages()).toHaveLength(50);
  });

  it('at once in one language leaves one of them, and no file that is nobody’s', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => put('en')));
    expect(new Set(answers.map(outcome))).toEqual(new Set(['200']));
    expect((await prefixes()).sort()).toEqual(['kept', ...Array<string>(7).fill('waits')]);
    const [state] = await known();
    expect((await objects.read(state?.key ?? '')).toString()).toContain('Hello');
  });

  it('whose file cannot be stored changes nothing, and what may be there goes', async () => {
    await put('en');
    const before = await known();
    objects.interfere = (method) => {
      if (method === 'put') throw new Error('the disk is full');
    };
    expect((await put('en', vtt.replace('Hello', 'Bye'))).status).toBe(500);
    expect(await known()).toEqual(before);
    expect(await prefixes()).toEqual(['kept', 'waits']);
  });

  it('of a video that is deleted meanwhile is 404, and the file goes', async () => {
    objects.interfere = async (method) => {
      if (method === 'put') await deleteVideo();
    };
    expect(outcome(await put('en'))).toBe('404 not_found');
    expect(await prefixes()).toEqual(['waits']);
  });

  it('that took so long that its file may be gone is to be tried again', async () => {
    objects.interfere = async (method) => {
      if (method !== 'put') return;
      await api.store.query(
        `update object_prefixes set delete_after = now() where video_id = $1 and kind = 'captions'`,
        [videoId],
      );
    };
    expect(outcome(await put('en'))).toBe('503 service_unavailable');
    expect(await languages()).toEqual([]);
  });
});

const deleteVideo = (): Promise<Answer> =>
  api.ask(`DELETE ${path().replace('/captions', '')}`, { bearer: me.full });
const hold = (legal: boolean): Promise<unknown> =>
  createHoldCommands(api.store).place(
    { videoId, source: 'admin', reference: 'admin', reason: null, legal },
    'admin',
  );

describe('deleting captions', () => {
  it('takes the language away, and tells the CDN [CAP-205, CAP-213, CAP-214]', async () => {
    await put('en');
    await put('fr');
    const before = await video();
    const gone = await remove('EN');
    expect([gone.status, gone.body]).toEqual([204, undefined]);
    expect(await languages()).toEqual(['fr']);
    expect((await known()).map(({ language }) => language)).toEqual(['fr']);
    expect(await prefixes()).toEqual(['waits', 'kept']);
    expect(Date.parse((await video()).updatedAt)).toBeGreaterThan(Date.parse(before.updatedAt));
    expect(outcome(await remove('en'))).toBe('404 not_found');
  });

  it('under a legal hold leaves the files where they are, until that is lifted', async () => {
    await put('en');
    await put('en');
    await hold(true);
    await put('en');
    await remove('en');
    expect(await languages()).toEqual([]);
    expect(await prefixes()).toEqual(['waits', 'waits', 'waits']);
    const going = async (): Promise<number> => {
      await api.store.query(
        `update object_prefixes set delete_after = now() - interval '1 minute' where video_id = $1 and kind = 'captions'`,
        [videoId],
      );
      return (await doomedPrefixes(api.store, 100)).filter((doomed) => doomed.videoId === videoId).length;
    };
    expect(await going()).toBe(0);
    const { lift } = createHoldCommands(api.store);
    await lift({ videoId, source: 'admin', reference: 'admin' }, 'admin');
    expect(await going()).toBe(3);
  });
});

describe('captions of a deleted video', () => {
  it('go with it: their files too', async () => {
    await put('en');
    await deleteVideo();
    expect(await prefixes()).toEqual(['doomed']);
    for (const answer of [await list(), await put('en'), await remove('en')]) {
      expect(outcome(answer)).toBe('404 not_found');
    }
  });
});

describe('captions of others', () => {
  it('are 404 to another project, and nothing to a playback-only key [AUT-008, AUT-004]', async () => {
    await put('en');
    const other = await createTenant(api);
    const foreign = path('en').replace(me.projectId, other.projectId);
    for (const request of [`GET ${foreign.replace('/en', '')}`, `PUT ${foreign}`, `DELETE ${foreign}`]) {
      const body = request.startsWith('PUT') ? { body: vtt } : {};
      expect(outcome(await api.ask(request, { bearer: other.full, ...body }))).toBe('404 not_found');
      const playback = { bearer: me.playback, ...body };
      const own = request.replace(other.projectId, me.projectId);
      expect(outcome(await api.ask(own, playback))).toBe('403 insufficient_scope');
    }
    expect(await languages()).toEqual(['en']);
  });
});
