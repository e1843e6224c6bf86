import { type Answer, type Meddling } from './meddler.ts';

/** Something that may be wrong with a CDN, and what the demo must say of it. */
interface Wrong {
  /** Meddles with a video of two segments, 640×360 and seven seconds long. */
  create(token: string): Meddling;
  failure: string | RegExp;
}

/** Changes the body of the answers whose path matches. */
const inBodyOf =
  (path: RegExp, change: (text: string) => string): Wrong['create'] =>
  () =>
  (answer) => {
    if (!path.test(answer.path)) return answer;
    return { ...answer, body: Buffer.from(change(answer.body.toString('utf8'))) };
  };

/** Changes the headers of every answer. */
const inHeaders =
  (changed: Answer['headers']): Wrong['create'] =>
  () =>
  (answer) => ({ ...answer, headers: { ...answer.headers, ...changed } });

/** Answers with what the path (or the whole address) gave before, when `when` says so. */
const replaying =
  (keyOf: (path: string) => string, when: (answer: Answer, token: string) => boolean): Wrong['create'] =>
  (token) => {
    const kept = new Map<string, Buffer>();
    return (answer) => {
      if (answer.status === 200) kept.set(keyOf(answer.path), answer.body);
      const body = when(answer, token) ? kept.get(keyOf(answer.path)) : undefined;
      return body ? { ...answer, status: 200, body } : answer;
    };
  };

const wholePath = (path: string): string => path;
const withoutQuery = (path: string): string => path.replace(/\?.*/, '');

/** By what the demo must notice. */
export const wrongs: Readonly<Record<string, Wrong>> = {
  'nothing when nothing is wrong': { create: () => (answer) => answer, failure: 'nothing' },
  'a segment that is cut short': {
    create: () => (answer) =>
      /360p\/seg-1\.m4s/.test(answer.path) && answer.status === 200
        ? { ...answer, body: answer.body.subarray(0, -500) }
        : answer,
    failure: 'picture 640×360: ffmpeg complained',
  },
  'a segment that is missing in the playlist': {
    create: inBodyOf(/360p\/index\.m3u8/, (text) => text.replace(/#EXTINF:[^\n]*\nseg-1[^\n]*\n/, '')),
    failure: 'picture 640×360: 180 pictures at 30, the source plays 210',
  },
  'segments in the wrong order': {
    create: inBodyOf(/360p\/index\.m3u8/, (text) =>
      text.replaceAll(/seg-[01]/g, (name) => (name === 'seg-0' ? 'seg-1' : 'seg-0')),
    ),
    failure: /picture 640×360: /,
  },
  'sound of another time': {
    create: inBodyOf(/\/audio\/index\.m3u8/, (text) => text.replaceAll('seg-1', 'seg-0')),
    failure: /sound: /,
  },
  'a playlist without its end': {
    create: inBodyOf(/360p\/index\.m3u8/, (text) => text.replace('#EXT-X-ENDLIST', '')),
    failure: 'cannot be played (the playlist does not end)',
  },
  'a bandwidth that is stated too low': {
    create: inBodyOf(/master\.m3u8/, (text) => text.replace(/:BANDWIDTH=\d+/, ':BANDWIDTH=1000')),
    failure: /playlists: 640×360 needs \d+ bit\/s/,
  },
  'a poster of something else': {
    create: inBodyOf(/poster\.jpg/, () => 'no picture'),
    failure: 'poster: ',
  },
  'an answer that a browser keeps from the page': {
    create: inHeaders({ 'access-control-allow-origin': 'https://elsewhere.example.com' }),
    failure: 'allows origin https://elsewhere.example.com',
  },
  'an embed page that anybody may frame': {
    create: inHeaders({ 'content-security-policy': "default-src 'none'" }),
    failure: 'embed page: who may frame it is undefined',
  },
  'an embed page without a player': {
    create: inBodyOf(/^\/e\//, (text) => text.replaceAll('<video', '<p')),
    failure: 'embed page: it has no video in it',
  },
  'a refusal without its header': {
    create: inHeaders({ 'x-svc-error': undefined }),
    failure: 'X-Svc-Error is null',
  },
  'a refusal with another code in its body': {
    create: inBodyOf(/^[^?]*$/, (text) => text.replace('"code":"token_missing"', '"code":"no_token"')),
    failure: "refused: no token: the code is 'no_token', expected 'token_missing'",
  },
  'a token decoder that takes two spellings': {
    create: replaying(withoutQuery, ({ path, headers }, token) => {
      const given = new URL(path, 'http://cdn').searchParams.get('token') ?? '';
      return headers['x-svc-error'] === 'token_invalid' && given.slice(0, -1) === token.slice(0, -1);
    }),
    failure: 'refused: re-spelled base64: the status is 200, expected 403',
  },
  'a signature that is not looked at': {
    create: replaying(withoutQuery, ({ headers }) => headers['x-svc-error'] === 'token_invalid'),
    failure: 'refused: forged token: the status is 200, expected 403',
  },
  'a cache that plays on during a hold': {
    create: replaying(wholePath, ({ headers }) => headers['x-svc-error'] === 'video_unavailable'),
    failure: 'refused: held: the status is 200, expected 403',
  },
};
