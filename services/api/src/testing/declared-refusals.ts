import { openApiDocument } from '@millrace/contract/openapi';
import { z } from 'zod';

const operations = z.record(
  z.string(),
  z.object({ responses: z.record(z.string(), z.object({ description: z.string() })) }),
);
const { paths } = z
  .object({ paths: z.record(z.string(), operations) })
  .parse(openApiDocument({ apiUrl: 'https://api.example.com', docsUrl: 'https://docs.example.com' }));
const routes = Object.entries(paths).map(([path, methods]) => ({
  ...{ path, methods },
  pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+').replaceAll('.', '\\.')}$`),
}));

/**
 * Refuses a refusal that the OpenAPI document does not list for its route (contract VER-003).
 * @param target the path that was asked, with its query
 */
export function assertDeclared(method: string, target: string, status: number, code: string): void {
  const [path = ''] = target.split('?');
  const route = routes.find(({ pattern }) => pattern.test(path));
  const operation = route?.methods[method === 'HEAD' ? 'get' : method.toLowerCase()];
  if (operation === undefined) return;
  if (operation.responses[String(status)]?.description.includes(`/errors/${code})`) !== true) {
    throw new Error(`${method} ${route?.path ?? ''} answered ${status} ${code}, which it does not declare`);
  }
}
