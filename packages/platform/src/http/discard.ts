import { type IncomingMessage, type ServerResponse } from 'node:http';

/** A refused upload may go on this long, so that its sender reads the answer instead of a broken pipe. */
const maximumDiscarded = 16 * 1024 * 1024;

/**
 * Before an answer to a request whose body was not read: lets the rest run out, within a bound, so that the
 * connection can be used again. One that still waits for `100 Continue` is closed: whether its body comes is
 * not known.
 */
export function discardRest(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.expect !== undefined) response.setHeader('Connection', 'close');
  let discarded = 0;
  request.on('data', (chunk: Buffer) => {
    discarded += chunk.length;
    if (discarded > maximumDiscarded) request.destroy();
  });
}
