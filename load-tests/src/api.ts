import { type Asking, type World } from './world.ts';

/** What the scenarios read of a Video. */
export interface Video {
  id: string;
  status: string;
  durationSeconds: number | null;
}
interface Upload {
  id: string;
  video: Video;
  partSizeBytes: number;
  parts: { partNumber: number; url: string }[];
}
interface PlaybackToken {
  token: string;
  embedUrl: string;
}
interface Endpoint {
  id: string;
}
/** What the scenarios read of a row of the delivery log. */
export interface Delivery {
  id: string;
  status: string;
  attempts: number;
  createdAt: string;
  lastAttemptAt: string | null;
}
interface Page<T> {
  data: T[];
  nextCursor: string | null;
}

/** An answer that a scenario cannot go on from. */
class UnexpectedError extends Error {
  override readonly name = 'UnexpectedError';
}

interface Call {
  name: string;
  body?: unknown;
  /** The status that the call is made for. */
  expected: number;
}

/** The calls that a customer's server makes, with the project's key. Each throws when it is not answered as it should. */
export interface Api {
  getProject(): Promise<void>;
  listDomains(): Promise<void>;
  listVideos(cursor: string | null): Promise<Page<Video>>;
  getVideo(videoId: string): Promise<Video>;
  renameVideo(videoId: string, title: string): Promise<void>;
  deleteVideo(videoId: string): Promise<void>;
  startUpload(sizeBytes: number): Promise<Upload>;
  completeUpload(uploadId: string, parts: { partNumber: number; etag: string }[]): Promise<Video>;
  createUploadToken(): Promise<void>;
  createPlaybackToken(videoId: string): Promise<PlaybackToken>;
  listEndpoints(): Promise<void>;
  createEndpoint(url: string): Promise<Endpoint>;
  deleteEndpoint(endpointId: string): Promise<void>;
  /** Queues one `webhook.test`. */
  testEndpoint(endpointId: string): Promise<Delivery>;
  listDeliveries(endpointId: string, cursor: string | null): Promise<Page<Delivery>>;
}

const seg = encodeURIComponent;
const page = (cursor: string | null): string =>
  cursor === null ? '?limit=100' : `?limit=100&cursor=${seg(cursor)}`;

export function createApi(world: World): Api {
  const { apiUrl, projectId, apiKey, domain, viewing } = world.settings;
  const project = `${apiUrl}/v1/projects/${seg(projectId)}`;
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const call = <T>(method: NonNullable<Asking['method']>, path: string, what: Call): Promise<T> =>
    ask(world, `${project}${path}`, { ...what, method, headers });
  const run = async (method: NonNullable<Asking['method']>, path: string, what: Call): Promise<void> => {
    await call(method, path, what);
  };
  const video = (id: string): string => `/videos/${seg(id)}`;
  const endpoint = (id: string): string => `/webhook-endpoints/${seg(id)}`;
  return {
    getProject: () => run('GET', '', { name: 'get project', expected: 200 }),
    listDomains: () => run('GET', '/domains', { name: 'list domains', expected: 200 }),
    listVideos: (cursor) => call('GET', `/videos${page(cursor)}`, { name: 'list videos', expected: 200 }),
    getVideo: (id) => call('GET', video(id), { name: 'get video', expected: 200 }),
    renameVideo: (id, title) =>
      run('PATCH', video(id), { name: 'rename video', body: { title }, expected: 200 }),
    deleteVideo: (id) => run('DELETE', video(id), { name: 'delete video', expected: 204 }),
    startUpload: (sizeBytes) => {
      const body = { sizeBytes, contentType: 'video/mp4', title: 'Load test' };
      return call('POST', '/uploads', { name: 'start upload', body, expected: 201 });
    },
    completeUpload: (id, parts) => {
      const what = { name: 'complete upload', body: { parts }, expected: 200 };
      return call('POST', `/uploads/${seg(id)}/complete`, what);
    },
    createUploadToken: () =>
      run('POST', '/upload-tokens', { name: 'create upload token', body: { domain }, expected: 201 }),
    createPlaybackToken: (id) => {
      const body = { domain, expiresInSeconds: viewing.tokenSeconds };
      const what = { name: 'create playback token', body, expected: 201 };
      return call('POST', `${video(id)}/playback-tokens`, what);
    },
    listEndpoints: () => run('GET', '/webhook-endpoints', { name: 'list endpoints', expected: 200 }),
    createEndpoint: (url) => {
      const body = { url, events: ['video.ready', 'video.held'] };
      return call('POST', '/webhook-endpoints', { name: 'create endpoint', body, expected: 201 });
    },
    deleteEndpoint: (id) => run('DELETE', endpoint(id), { name: 'delete endpoint', expected: 204 }),
    testEndpoint: (id) => call('POST', `${endpoint(id)}/test`, { name: 'test endpoint', expected: 202 }),
    listDeliveries: (id, cursor) =>
      call('GET', `${endpoint(id)}/deliveries${page(cursor)}`, { name: 'list deliveries', expected: 200 }),
  };
}

/** The team's calls. */
export interface Team {
  hold(videoId: string): Promise<void>;
  lift(videoId: string): Promise<void>;
}

/** @throws Error when the settings have no admin address */
export function createTeam(world: World): Team {
  const { admin } = world.settings;
  if (admin === null) throw new Error('this needs ADMIN_URL and ADMIN_TOKEN');
  const headers = { authorization: `Bearer ${admin.token}`, 'content-type': 'application/json' };
  const url = (videoId: string): string => `${admin.url}/admin/videos/${seg(videoId)}/hold`;
  return {
    hold: async (id) => {
      const body = { reason: 'Load test' };
      await ask(world, url(id), { method: 'POST', headers, name: 'hold', body, expected: 200 });
    },
    lift: async (id) => {
      await ask(world, url(id), { method: 'DELETE', headers, name: 'lift', expected: 200 });
    },
  };
}

interface FullCall extends Call {
  method: NonNullable<Asking['method']>;
  headers: Readonly<Record<string, string>>;
}

async function ask<T>(world: World, url: string, { body, expected, ...how }: FullCall): Promise<T> {
  const { status, text } = await world.http.send(url, {
    ...how,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const { meter } = world;
  meter.event('api_available', status !== 0 && status < 500, { name: how.name });
  meter.event('api_expected', status === expected, { name: how.name, status: String(status) });
  if (status !== expected) throw new UnexpectedError(`${how.name} answered ${status} ${codeOf(text)}`);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

/** The code of a problem body (RFC 9457), which is safe to show; empty when there is none. */
export const codeOf = (text: string): string => /"code":\s*"(\w+)"/.exec(text)?.[1] ?? '';
