import { type Answer } from './call.ts';
import { make } from './dom.ts';
import { isUpload, sendParts } from './parts.ts';

/** What can be done with an answer beside reading it. */
export interface AnswerTools {
  /** Notes what was uploaded for the complete call, and goes there. */
  onParts: (parts: unknown) => void;
}

/** The answer as it is shown. */
export function showAnswer(answer: Answer, tools: AnswerTools): Node[] {
  const { status, body, requestId, ms } = answer;
  const text = typeof body === 'string' ? body : JSON.stringify(body, null, 2);
  return [
    make('p', { id: 'status' }, make('strong', {}, String(status)), ` in ${String(ms)} ms, ${requestId}`),
    ...(body === undefined ? [] : [make('pre', { id: 'body', tabindex: '0' }, text)]),
    ...(isUpload(body) ? [partsForm(body, tools)] : []),
    ...players(body),
  ];
}

function partsForm(upload: Parameters<typeof sendParts>[0], { onParts }: AnswerTools): HTMLElement {
  const input = make('input', { id: 'parts-file', type: 'file', required: '' });
  const said = make('p', { role: 'status' });
  const form = make(
    'form',
    {},
    make('p', {}, make('label', { for: input.id }, 'The file of this upload'), input),
    make('p', {}, make('button', {}, 'Send its parts')),
    said,
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const [file] = input.files ?? [];
    if (file === undefined) return;
    said.textContent = 'Sending…';
    sendParts(upload, file).then(onParts, (error: unknown) => {
      said.textContent = String(error);
    });
  });
  return form;
}

/** A way to play what the answer is a token for. */
function players(body: unknown): HTMLElement[] {
  const { embedUrl, token, thumbnailUrl } = (body ?? {}) as Record<string, unknown>;
  if (typeof embedUrl !== 'string' || typeof token !== 'string') return [];
  const src = embedUrl.includes('?') ? embedUrl : `${embedUrl}?token=${token}`;
  // Without a Referer it plays in a tab of its own, wherever this page stands.
  const link = make('a', { href: src, target: '_blank', rel: 'noreferrer' }, 'Play it in a tab of its own');
  // A preview plays in frames of dashboard hosts, which are https.
  const frames = thumbnailUrl === undefined && location.protocol === 'https:';
  return [
    make('p', {}, link),
    ...(frames ? [make('iframe', { title: 'Preview', src, allow: 'fullscreen' })] : []),
  ];
}
