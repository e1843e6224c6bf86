import { showAnswer } from './answer.ts';
import { call } from './call.ts';
import { find, make } from './dom.ts';
import { createForm } from './form.ts';
import { learn } from './memory.ts';
import { type OpenApi, type Operation, sessionOperations } from './operations.ts';

const api = find('console').dataset['api'] ?? '';
/** What answers told so far, by the field that takes it. */
const known = new Map<string, unknown>();
const routes = find('routes');
const panel = find('panel');

async function showWho(): Promise<void> {
  const { status, body } = await call(api, { method: 'GET', path: '/v1/me', headers: {} });
  const isIn = status === 200;
  const { user, account } = (body ?? {}) as Record<string, Record<string, string> | undefined>;
  find('who').textContent = isIn
    ? `Signed in as ${user?.['email'] ?? ''}, account ${account?.['id'] ?? ''} on ${account?.['planId'] ?? ''}.`
    : `Not signed in (${String(status)}).`;
  find('sign-in').hidden = isIn;
  find('sign-out').hidden = !isIn;
}

function listRoutes(operations: readonly Operation[]): void {
  const byTag = Map.groupBy(operations, ({ tag }) => tag);
  for (const [tag, members] of byTag) {
    const items = members.map(({ id, summary }) => make('li', {}, make('a', { href: `#${id}` }, summary)));
    routes.append(make('h2', {}, tag), make('ul', {}, ...items));
  }
}

function show(operation: Operation | undefined, document: OpenApi): void {
  for (const link of routes.querySelectorAll('a'))
    if (link.hash === `#${operation?.id ?? ''}`) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
  if (operation === undefined) {
    panel.replaceChildren(
      make('p', {}, 'Choose a route. Ids that answers name are filled into the next forms.'),
    );
    return;
  }
  const { method, path, summary, description } = operation;
  const form = createForm(operation, document, known);
  const answer = make('section', { id: 'answer', 'aria-label': 'Answer', 'aria-live': 'polite' });
  panel.replaceChildren(
    make('h2', { tabindex: '-1' }, summary),
    make('p', {}, make('code', {}, `${method} ${path}`)),
    ...(description === '' ? [] : [make('p', {}, description)]),
    form.element,
    answer,
  );
  form.element.addEventListener('submit', (event) => {
    event.preventDefault();
    answer.replaceChildren();
    send().catch((error: unknown) => {
      answer.replaceChildren(make('p', { id: 'status' }, String(error)));
    });
  });

  async function send(): Promise<void> {
    const got = await call(api, form.request());
    for (const [field, value] of learn(got.body)) known.set(field, value);
    await showWho();
    answer.replaceChildren(
      ...showAnswer(got, {
        onParts(parts) {
          known.set('parts', parts);
          location.hash = '#completeUpload';
        },
      }),
    );
  }
}

async function start(): Promise<void> {
  find('sign-out').addEventListener('click', () => {
    void call(api, { method: 'POST', path: '/auth/logout', headers: {} }).then(showWho);
  });
  const document = (await (await fetch(`${api}/openapi.json`)).json()) as OpenApi;
  const operations = sessionOperations(document);
  const current = (): Operation | undefined => operations.find(({ id }) => `#${id}` === location.hash);
  listRoutes(operations);
  show(current(), document);
  addEventListener('hashchange', () => {
    show(current(), document);
    panel.querySelector('h2')?.focus();
  });
  await showWho();
}

start().catch((error: unknown) => {
  find('who').textContent = `The API cannot be called from here: ${String(error)}`;
});
