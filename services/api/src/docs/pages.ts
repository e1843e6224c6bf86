import { type ErrorCode, errorCodes, type Problem } from '@millrace/contract';
import { errorCauses } from './error-causes.ts';

const escaped: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, (sign) => escaped[sign] ?? sign);
const withCode = (text: string): string => escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>');

/** The rule that the contract gives by status (contract "Errors", last line). */
const adviceOf = (status: number): string => {
  if (status === 429) return 'Try again after `Retry-After` seconds.';
  if (status >= 500) return 'Try again, waiting longer each time.';
  return 'Do not send the same request again unchanged.';
};

/** The page of an error code: what it means and what to do. */
export function errorPage(code: ErrorCode): string {
  const { status, title } = errorCodes[code];
  return page(
    `${code} · Millrace`,
    `<main><h1><code>${code}</code></h1>
<p>HTTP ${status}. ${escapeHtml(title)}</p>
<p>${withCode(errorCauses[code])}</p>
<p>${withCode(adviceOf(status))}</p>
<p><a href="../docs">The reference of the API</a></p></main>`,
  );
}

/** A failure as a page, for the person whose browser was sent here. */
export const problemPage = ({ code, status, title, detail, type }: Problem): string =>
  page(
    title,
    `<main><h1>${escapeHtml(title)}</h1>
${detail === undefined ? '' : `<p>${escapeHtml(detail)}</p>`}
<p>HTTP ${status}, <a href="${escapeHtml(type)}"><code>${escapeHtml(code)}</code></a></p></main>`,
  );

/** The page that `swagger-ui` fills. */
export const docsPage = (): string =>
  page(
    'Millrace API',
    `<div id="reference"></div>
<script src="docs/assets/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>`,
    '<link rel="stylesheet" href="docs/assets/swagger-ui.css">',
  );

export const docsScript = `SwaggerUIBundle({ url: 'openapi.json', dom_id: '#reference', deepLinking: true });\n`;

const page = (title: string, body: string, head = ''): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}</title>
${head}
</head>
<body>
${body}
</body>
</html>
`;
