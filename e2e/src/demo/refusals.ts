import { problem, type Video } from '@millrace/contract';
import { type Customer } from './customer.ts';
import { parseMaster } from './hls.ts';
import { expectEqual, type Report } from './report.ts';
import { type Stack } from './stack.ts';
import { type Player } from './walk.ts';

/** A request that must be refused: where, with which headers, and how. */
interface Refusal {
  url: string;
  headers?: Record<string, string>;
  status: number;
  code: string;
}

const requestTimeoutMs = 30_000;

/** @throws Error unless status, problem code, `X-Svc-Error`, and for a page of another origin CORS, are as promised */
async function expectRefusal({ url, headers = {}, status, code }: Refusal): Promise<void> {
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(requestTimeoutMs) });
  const body = await response.text();
  expectEqual('the status', response.status, status);
  expectEqual('X-Svc-Error', response.headers.get('x-svc-error'), code);
  const type = response.headers.get('content-type')?.split(';')[0];
  expectEqual('the content type', type, 'application/problem+json');
  expectEqual('the code', problem.parse(JSON.parse(body)).code, code);
  expectEqual(
    'the allowed origin',
    response.headers.get('access-control-allow-origin'),
    headers['origin'] ?? null,
  );
}

/** The same address with another token, or with none. */
export function withToken(url: string, token: string | null): string {
  const changed = new URL(url);
  if (token === null) changed.searchParams.delete('token');
  else changed.searchParams.set('token', token);
  return changed.href;
}

/** The token with one character of its signature changed. */
function forged(token: string): string {
  const at = token.lastIndexOf('.') + 10;
  return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
}

const base64url = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** The token in another spelling of the same bytes: a lenient decoder drops the last character's low bits. */
function respelled(token: string): string {
  const last = base64url.indexOf(token.at(-1) ?? '');
  const other = token.slice(0, -1) + (base64url[last ^ 1] ?? '');
  const bytes = (text: string): Buffer => Buffer.from(text.slice(text.lastIndexOf('.') + 1), 'base64url');
  if (!bytes(other).equals(bytes(token))) throw new Error('the token cannot be spelled in another way');
  return other;
}

/** Tries again until it succeeds. @returns how long that took, in seconds @throws the last error when it took too long */
async function within(seconds: number, attempt: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  for (;;) {
    const began = performance.now() - startedAt;
    try {
      await attempt();
      return began / 1000;
    } catch (error) {
      if (began > seconds * 1000) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

interface Scene {
  stack: Stack;
  report: Report;
  customer: Customer;
  video: Video;
  player: Player;
  /** The master playlist with a token that is good. */
  playlistUrl: string;
  token: string;
}

/** Shows that the CDN refuses what it must, and plays again once it may. @throws DemoFailure */
export async function checkRefusals(scene: Scene): Promise<void> {
  await checkTokens(scene);
  await checkPlan(scene);
  await checkHold(scene);
}

async function checkTokens({ report, player, playlistUrl: url, token }: Scene): Promise<void> {
  const headers = { origin: player.origin };
  const refusals: Record<string, () => Omit<Refusal, 'status'>> = {
    'no token': () => ({ url: withToken(url, null), code: 'token_missing', headers }),
    'forged token': () => ({ url: withToken(url, forged(token)), code: 'token_invalid', headers }),
    're-spelled base64': () => ({ url: withToken(url, respelled(token)), code: 'token_invalid', headers }),
    'no origin': () => ({ url, code: 'origin_missing' }),
    'wrong origin': () => ({
      url,
      code: 'domain_mismatch',
      headers: { origin: 'https://elsewhere.example.com' },
    }),
  };
  for (const [name, refusal] of Object.entries(refusals)) {
    await report.check(
      `refused: ${name}`,
      async () => {
        const refused = { ...refusal(), status: 403 };
        await expectRefusal(refused);
        return refused;
      },
      ({ status, code }) => `${status} ${code}`,
    );
  }
}

const freeHeight = 720;

/** A downgrade caps quality at once: a higher one is refused, and no longer listed. */
async function checkPlan({ stack, report, customer, video, player, playlistUrl }: Scene): Promise<void> {
  const heights = async (): Promise<number[]> =>
    parseMaster((await player.get(playlistUrl)).toString('utf8')).variants.map(({ width, height }) =>
      Math.min(width, height),
    );
  const all = await report.check(
    'plan changed to free',
    async () => {
      const before = await heights();
      await stack.millrace('account', 'plan', customer.accountId, 'free');
      return before;
    },
    () => 'by the command line',
  );
  const above = new URL(`/v/${video.id}/1080p/index.m3u8${new URL(playlistUrl).search}`, playlistUrl).href;
  const refusal = { url: above, headers: { origin: player.origin }, status: 403, code: 'plan_limit_reached' };
  await report.check(
    "refused: above the plan's quality",
    async () => {
      const seconds = await within(60, () => expectRefusal(refusal));
      expectEqual(
        'what the master lists',
        await heights(),
        all.filter((height) => height <= freeHeight),
      );
      return seconds;
    },
    (seconds) => `403 plan_limit_reached ${seconds.toFixed(1)} s after the downgrade`,
  );
  await report.check(
    'every quality again after the upgrade',
    async () => {
      await stack.millrace('account', 'plan', customer.accountId, 'agency');
      return within(60, async () => expectEqual('what the master lists', await heights(), all));
    },
    (seconds) => `${seconds.toFixed(1)} s after it`,
  );
}

async function checkHold({ stack, report, video, player, playlistUrl }: Scene): Promise<void> {
  const headers = { origin: player.origin };
  const quality = video.qualities[0] ?? '';
  const { search } = new URL(playlistUrl);
  const paths = ['master.m3u8', `${quality}/index.m3u8`, `${quality}/seg-0.m4s`, 'poster.jpg'];
  const urls = paths.map((path) => new URL(`/v/${video.id}/${path}${search}`, playlistUrl).href);
  await report.check(
    'refused: held',
    async () => {
      await stack.millrace('video', 'hold', video.id, '--reason', 'demo');
      return within(5, async () => {
        for (const url of urls) {
          await expectRefusal({ url, headers, status: 403, code: 'video_unavailable' });
        }
      });
    },
    (seconds) => `403 video_unavailable ${seconds.toFixed(1)} s after the hold`,
  );
  await report.check(
    'plays again after the hold',
    async () => {
      await stack.millrace('video', 'lift', video.id);
      return within(5, async () => {
        for (const url of urls) await player.get(url);
      });
    },
    (seconds) => `${seconds.toFixed(1)} s after the lift`,
  );
}

/** The player's page opens by itself and in frames of the token's domain, in no others. @throws DemoFailure */
export async function checkEmbedPage(report: Report, player: Player, url: string): Promise<void> {
  await report.check(
    'embed page',
    async () => {
      const headers = { accept: 'text/html', referer: `${player.origin}/watch` };
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(requestTimeoutMs) });
      const page = await response.text();
      expectEqual('the status', response.status, 200);
      expectEqual('the content type', response.headers.get('content-type')?.split(';')[0], 'text/html');
      const policy = response.headers.get('content-security-policy') ?? '';
      const framers = /(?:^|;) *frame-ancestors ([^;]*)/.exec(policy)?.[1]?.trim();
      expectEqual('who may frame it', framers, player.origin);
      if (!/<video\b/.test(page)) throw new Error('it has no video in it');
    },
    () => `to be framed by ${player.origin} alone`,
  );
  const headers = { referer: 'https://elsewhere.example.com/watch' };
  await report.check(
    'refused: embed page in a frame elsewhere',
    () => expectRefusal({ url, headers, status: 403, code: 'domain_mismatch' }),
    () => '403 domain_mismatch',
  );
}

/** A token cannot live for less than a minute, so this comes last. @throws DemoFailure */
export async function checkExpiry(
  report: Report,
  player: Player,
  { url, expiresAt, signal }: { url: string; expiresAt: Date; signal: AbortSignal },
): Promise<void> {
  const startedAt = Date.now();
  while (Date.now() < expiresAt.getTime()) {
    signal.throwIfAborted();
    report.progress('token expires', (Date.now() - startedAt) / (expiresAt.getTime() - startedAt));
    await new Promise((resolve) => setTimeout(resolve, Math.min(500, expiresAt.getTime() - Date.now())));
  }
  const refusal = { url, headers: { origin: player.origin }, status: 403, code: 'token_expired' };
  await report.check(
    'refused: expired',
    () => expectRefusal(refusal),
    () => '403 token_expired',
  );
}
