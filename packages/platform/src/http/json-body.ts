import { fieldProblem, ProblemError } from '@millrace/contract';
import { type IncomingMessage, type ServerResponse } from 'node:http';

/** The largest JSON body, in bytes (contract CNV-021). */
const maximumBytes = 1024 * 1024;
/** Deeper nesting serves nobody and would exhaust the stack of whoever walks it. */
const maximumDepth = 64;

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** 415 for a body that is declared as something else than plain `application/json` in UTF-8. */
export function checkMediaType({ headers }: IncomingMessage, jsonOnly: boolean, willParse: boolean): void {
  const { type, charset } = parseContentType(headers['content-type'] ?? '');
  const isJson = type === 'application/json';
  if (jsonOnly && !isJson) throw unsupported('The body must be application/json.');
  if (!willParse) return;
  if (headers['content-encoding'] !== undefined) throw unsupported('The body must have no Content-Encoding.');
  if (isJson && charset !== null && charset !== 'utf-8' && charset !== 'utf8') {
    throw unsupported('The body must be UTF-8.');
  }
}

const unsupported = (detail: string): ProblemError => new ProblemError('unsupported_media_type', { detail });

function parseContentType(value: string): { type: string; charset: string | null } {
  const [type = '', ...parameters] = value.toLowerCase().split(';');
  for (const parameter of parameters) {
    const charset = /^\s*charset="?([^"\s]*)"?\s*$/.exec(parameter)?.[1];
    if (charset !== undefined) return { type: type.trim(), charset };
  }
  return { type: type.trim(), charset: null };
}

/**
 * Reads and parses the body; undefined when there is none. 400 when it is too large, not UTF-8, not JSON, nested
 * too deep, or holds a string that the record cannot keep (NUL, a lone surrogate).
 */
export async function readJson(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
  if (!hasBody(request)) return undefined;
  const bytes = await readBytes(request, response, maximumBytes);
  const value = parse(bytes);
  refuseUnstorable(value, '', 0);
  return value;
}

function parse(bytes: Buffer): unknown {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw invalidBody('is not UTF-8');
  }
  try {
    return JSON.parse(text);
  } catch {
    throw invalidBody('is not JSON');
  }
}

const invalidBody = (message: string): ProblemError =>
  new ProblemError('invalid_request', {
    detail: `The body ${message}.`,
    errors: [{ path: 'body', message }],
  });

/**
 * Reads the body; empty when there is none.
 * @throws ProblemError `invalid_request` when it has more bytes
 */
export function readBytes(
  request: IncomingMessage,
  response: ServerResponse,
  maximumBytes: number,
): Promise<Buffer> {
  if (!hasBody(request)) return Promise.resolve(Buffer.alloc(0));
  const tooLarge = (): ProblemError => invalidBody(`is larger than ${maximumBytes} bytes`);
  if (Number(request.headers['content-length'] ?? 0) > maximumBytes) return Promise.reject(tooLarge());
  // The client asked before sending; it was not answered until the request was worth reading.
  if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue();
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (finish: () => void): void => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
      finish();
    };
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > maximumBytes) {
        settle(() => {
          reject(tooLarge());
        });
        return;
      }
      chunks.push(chunk);
    };
    const onEnd = (): void =>
      settle(() => {
        resolve(Buffer.concat(chunks));
      });
    const onClose = (): void =>
      settle(() => {
        reject(new ClientGoneError('the client left before its body was read'));
      });
    request.on('data', onData).once('end', onEnd).once('close', onClose).once('error', onClose);
  });
}

/** Nobody is left to answer. */
export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError';
  readonly code = 'client_gone';
}

/** Walks keys and values: PostgreSQL text takes neither NUL nor half a character, wherever it stands. */
function refuseUnstorable(value: unknown, path: string, depth: number): void {
  if (typeof value === 'string') {
    const problem = value.includes('\0')
      ? 'contains NUL'
      : value.isWellFormed()
        ? null
        : 'contains a lone surrogate';
    if (problem !== null) throw fieldProblem('invalid_request', path || 'body', problem);
  } else if (typeof value === 'object' && value !== null) {
    if (depth === maximumDepth) throw invalidBody('is nested too deeply');
    for (const [key, item] of Object.entries(value)) {
      refuseUnstorable(key, path || 'body', depth);
      const at = Array.isArray(value) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`;
      refuseUnstorable(item, at, depth + 1);
    }
  }
}
