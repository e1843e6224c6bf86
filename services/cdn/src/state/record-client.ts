import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import {
  type CdnProcessNote,
  problem,
  playbackStateResponse,
  type PlaybackStateResponse,
} from '@millrace/contract';
import { currentTraceHeaders, inSpan } from '@millrace/platform';

/** Reads states from the record by the API's internal route: the CDN has no database of its own. */
export interface RecordClient {
  /**
   * The states of a video and its account as the record has them now; all null when it does not know the video.
   * @throws {Error} with code `record_unavailable` whenever the route does not clearly say either
   */
  read(videoId: string): Promise<PlaybackStateResponse>;
  /**
   * Tells the record that this process is there.
   * @throws {Error} with code `record_unavailable` when the record may not know it now
   */
  note(bootId: string, note: CdnProcessNote): Promise<void>;
  close(): void;
}

/** The internal route did not answer, or not in its form. */
class RecordUnavailableError extends Error {
  override readonly name = 'RecordUnavailableError';
  readonly code = 'record_unavailable';
}

export interface RecordClientOptions {
  /** Base URL of the API's internal port. */
  url: string;
  /** Value of `X-Internal-Secret`. */
  secret: string;
  /** One read in all, waiting for a connection included. */
  timeoutMs: number;
}

interface Answer {
  status: number;
  body: string;
}

/** A state answer takes a kilobyte or two; a title and a logo's address may add as many. */
const maximumAnswerBytes = 64 * 1024;
const maximumConnections = 64;

export function createRecordClient({ url, secret, timeoutMs }: RecordClientOptions): RecordClient {
  const base = url.replace(/\/+$/, '');
  const secure = base.startsWith('https:');
  const agent = new (secure ? HttpsAgent : HttpAgent)({ keepAlive: true, maxSockets: maximumConnections });
  const send = secure ? httpsRequest : httpRequest;

  const ask = (path: string, sent?: object): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const request = send(`${base}${path}`, {
        agent,
        method: sent === undefined ? 'GET' : 'PUT',
        headers: {
          ...{ 'X-Internal-Secret': secret, Accept: 'application/json' },
          ...(sent === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...currentTraceHeaders(),
        },
        signal: AbortSignal.timeout(timeoutMs),
      });
      request.once('error', reject);
      request.once('response', (response) => {
        readBody(response).then((body) => {
          resolve({ status: response.statusCode ?? 0, body });
        }, reject);
      });
      request.end(sent === undefined ? undefined : JSON.stringify(sent));
    });
  /** @throws {RecordUnavailableError} when there is no answer, or `use` finds fault with it */
  const speak = async <T>(asking: Promise<Answer>, use: (answer: Answer) => T): Promise<T> => {
    try {
      return use(await asking);
    } catch (error) {
      if (error instanceof RecordUnavailableError) throw error;
      throw new RecordUnavailableError('the internal route did not answer', { cause: error });
    }
  };

  return {
    read: (videoId) =>
      speak(
        inSpan('GET /internal/playback-state/{videoId}', { kind: 'CLIENT' }, () =>
          ask(`/internal/playback-state/${videoId}`),
        ),
        ({ status, body }) => interpret(videoId, status, body),
      ),
    note: (bootId, note) =>
      speak(ask(`/internal/cdn-processes/${bootId}`, note), ({ status }) => {
        if (status !== 200) throw new RecordUnavailableError(`the internal route answered ${status}`);
      }),
    close: () => agent.destroy(),
  };
}

function interpret(videoId: string, status: number, body: string): PlaybackStateResponse {
  // A bare 404 may come from anything between; only the API's own says that the video is unknown.
  if (status === 404 && problem.safeParse(parseJson(body)).data?.code === 'not_found') {
    return { video: null, account: null, project: null };
  }
  if (status !== 200) throw new RecordUnavailableError(`the internal route answered ${status}`);
  const answer = playbackStateResponse.safeParse(parseJson(body));
  if (!answer.success) {
    throw new RecordUnavailableError('the internal route answered in another form', { cause: answer.error });
  }
  const { video, account, project } = answer.data;
  if (video !== null && video.videoId !== videoId) {
    throw new RecordUnavailableError('the internal route answered for another video');
  }
  if (account === null ? video?.status === 'ready' : account.accountId !== video?.accountId) {
    throw new RecordUnavailableError('the internal route answered without the account of the video');
  }
  if (project !== null && project.projectId !== video?.projectId) {
    throw new RecordUnavailableError('the internal route answered with another project');
  }
  return answer.data;
}

async function readBody(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maximumAnswerBytes) throw new Error('the answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
