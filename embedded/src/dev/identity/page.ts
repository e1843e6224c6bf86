import { escapeHtml } from '../html.ts';

/** Asks who to be; the answers are the form's fields. */
export const signInPage = ({ action, client }: { action: string; client: string }): string =>
  page(
    'Sign in for development',
    `<h1>Sign in for development</h1>
<p>Be whom you like: this identity provider is on this machine only, and believes everything. It signs you in to
<strong>${escapeHtml(client)}</strong>.</p>
<form method="post" action="${escapeHtml(action)}">
<p><label for="email">E-mail address</label><input id="email" name="email" type="email" required maxlength="254"
  value="developer@example.com" autocomplete="email" autofocus></p>
<p><label for="name">Name</label><input id="name" name="name" maxlength="100" autocomplete="name"></p>
<p><input id="verified" name="verified" type="checkbox" checked>
<label for="verified">The e-mail address is verified</label></p>
<p><button name="do" value="sign-in">Sign in</button>
<button name="do" value="cancel" formnovalidate>Cancel</button></p>
</form>`,
  );

export const overPage = (): string =>
  page('Begin again', '<h1>Begin again</h1><p>This sign-in is over, or began in another browser.</p>');

export const refusalPage = (error: string, detail: string): string =>
  page(
    'Sign-in was refused',
    `<h1>Sign-in was refused</h1><p><code>${escapeHtml(error)}</code></p><p>${escapeHtml(detail)}</p>`,
  );

const page = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark }
body { margin: 10vh auto; max-width: 30rem; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif }
label { margin-inline-end: .5rem }
input:not([type=checkbox]) { display: block; box-sizing: border-box; width: 100%; padding: .4rem; font: inherit }
button { padding: .4rem 1rem; font: inherit }
</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;
