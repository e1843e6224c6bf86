import { type PageSettings } from '../page-settings.ts';
import { type MessageKey } from '../texts.ts';
import { withToken } from './addresses.ts';
import { type Verdict } from './token-keeper.ts';

const answerMs = 10_000;

/**
 * Asks for the headers of the master playlist, past every cache: the CDN makes all its checks for it, so the
 * answer says whether the video plays now, and if not, why.
 */
export async function askCdn(master: string, token: string): Promise<Verdict> {
  try {
    const answer = await fetch(withToken(master, token), {
      ...{ method: 'HEAD', cache: 'no-store', credentials: 'omit' },
      signal: AbortSignal.timeout(answerMs),
    });
    if (answer.ok) return 'ok';
    return { code: answer.headers.get('X-Svc-Error') ?? 'service_unavailable' };
  } catch {
    return 'unreachable';
  }
}

/** The message that the embed page itself would show now; null when it would play, or cannot be had. */
export async function askPage(page: string, token: string): Promise<MessageKey | null> {
  try {
    const answer = await fetch(withToken(page, token), {
      ...{ cache: 'no-store', credentials: 'omit', headers: { Accept: 'text/html' } },
      signal: AbortSignal.timeout(answerMs),
    });
    const text = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const settings = text.getElementById('player')?.dataset['settings'];
    return settings === undefined ? null : (JSON.parse(settings) as PageSettings).refused;
  } catch {
    return null;
  }
}
