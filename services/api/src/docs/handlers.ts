import { type ErrorCode, errorCodes, ProblemError } from '@millrace/contract';
import { openApiDocument } from '@millrace/contract/openapi';
// Its main module would load the whole bundle, which is for browsers.
import getAbsoluteFSPath from 'swagger-ui-dist/absolute-path.js';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { docsPage, docsScript, errorPage } from './pages.ts';

/** Scripts and styles of the reference, as their package brings them. */
export const docsAssets = { path: '/docs/assets', folder: getAbsoluteFSPath() };

/** swagger-ui writes styles into its elements and draws with data URLs; scripts come from here alone. */
const policy =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'";

type DocsHandlers = Pick<ApiHandlers, 'getOpenApi' | 'getDocs' | 'getDocsScript' | 'getErrorPage'>;

export function docsHandlers({ config }: FeatureDeps): DocsHandlers {
  const document = openApiDocument({ apiUrl: config.API_URL, docsUrl: config.DOCS_URL });
  return {
    getOpenApi: () => Promise.resolve(document),
    getDocs: ({ setHeader }) => {
      setHeader('Content-Security-Policy', policy);
      return Promise.resolve(docsPage());
    },
    getDocsScript: () => Promise.resolve(docsScript),
    getErrorPage: ({ params, setHeader }) => {
      if (!Object.hasOwn(errorCodes, params.code)) throw new ProblemError('not_found');
      setHeader('Content-Security-Policy', policy);
      return Promise.resolve(errorPage(params.code as ErrorCode));
    },
  };
}
