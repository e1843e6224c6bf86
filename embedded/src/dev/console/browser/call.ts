/** An answer of the API. */
export interface Answer {
  status: number;
  /** As JSON where it is JSON, else as text; undefined without a body. */
  body: unknown;
  requestId: string;
  ms: number;
}

export interface Request {
  method: string;
  /** With its query. */
  path: string;
  headers: Record<string, string>;
  body?: string;
}

/** Calls the API with the browser's session. @throws TypeError when the browser cannot send it or may not read it */
export async function call(api: string, { path, ...init }: Request): Promise<Answer> {
  const begun = performance.now();
  const response = await fetch(api + path, { ...init, credentials: 'include', cache: 'no-store' });
  const text = await response.text();
  return {
    status: response.status,
    body: parsed(text),
    requestId: response.headers.get('x-request-id') ?? '',
    ms: Math.round(performance.now() - begun),
  };
}

function parsed(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
