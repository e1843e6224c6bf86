import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import {
  type AccountPlaybackState,
  cdnProcessNote,
  type CdnProcessNote,
  type PlaybackStateResponse,
  problemOf,
  type ProjectPlaybackState,
  type VideoPlaybackState,
} from '@millrace/contract';

/** The API's internal route, on a real socket, with the record that a test wants. */
export interface RecordStub {
  readonly url: string;
  readonly secret: string;
  videos: Map<string, VideoPlaybackState>;
  accounts: Map<string, AccountPlaybackState>;
  projects: Map<string, ProjectPlaybackState>;
  /** What processes told of themselves, in their order. */
  notes: CdnProcessNote[];
  /** Reads so far. */
  reads: number;
  /** While true, connections break. */
  down: boolean;
  /** Awaited before an answer is sent; the answer was made before. */
  beforeAnswer: (() => Promise<void>) | null;
  close(): Promise<void>;
}

export async function createRecordStub(): Promise<RecordStub> {
  const secret = 'internal-secret';
  const server: Server = createServer((request, response) => {
    if (request.method === 'GET') stub.reads++;
    if (stub.down) {
      request.socket.destroy();
      return;
    }
    if (request.method === 'PUT') {
      void request.toArray().then((chunks: Buffer[]) => {
        const body = Buffer.concat(chunks).toString('utf8');
        stub.notes.push(cdnProcessNote.parse(JSON.parse(body)));
        response.writeHead(200, { 'Content-Type': 'application/json' }).end(body);
      });
      return;
    }
    const send = (status: number, body: unknown): void => {
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    };
    const videoId = /^\/internal\/playback-state\/(vid_[A-Za-z0-9]+)$/.exec(request.url ?? '')?.[1];
    if (request.headers['x-internal-secret'] !== secret || videoId === undefined) {
      send(401, problemOf('https://docs.example', 'unauthorized'));
      return;
    }
    const video = stub.videos.get(videoId);
    const answer: PlaybackStateResponse | null =
      video === undefined
        ? null
        : {
            video,
            account: stub.accounts.get(video.accountId) ?? null,
            project: stub.projects.get(video.projectId ?? '') ?? null,
          };
    const finish = (): void => {
      if (answer === null) send(404, problemOf('https://docs.example', 'not_found'));
      else send(200, answer);
    };
    if (stub.beforeAnswer === null) finish();
    else void stub.beforeAnswer().then(finish);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stub: RecordStub = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    secret,
    videos: new Map(),
    accounts: new Map(),
    projects: new Map(),
    notes: [],
    reads: 0,
    down: false,
    beforeAnswer: null,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return stub;
}
