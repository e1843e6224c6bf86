import { escapeHtml } from '../html.ts';

/** The console's page. @param api base of the API, as browsers reach it */
export const consolePage = (api: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Development console · Millrace</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/dev/console.css">
<script src="/dev/console.js" defer></script>
</head>
<body id="console" data-api="${escapeHtml(api)}">
<header>
<h1>Development console</h1>
<p id="who" role="status">…</p>
<p id="sign-in" hidden>
${['google', 'microsoft'].map((name) => signInLink(api, name)).join(' ')}
</p>
<p id="sign-out" hidden><button type="button">Sign out</button></p>
</header>
<nav id="routes" aria-label="Routes"></nav>
<main id="panel"></main>
</body>
</html>
`;

const signInLink = (api: string, provider: string): string =>
  `<a href="${escapeHtml(api)}/auth/${provider}/start?returnTo=/dev/">Sign in as by ${provider}</a>`;
