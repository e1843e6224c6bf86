import { createHash } from 'node:crypto';

/** What the name of a Kubernetes object may be long (RFC 1123 subdomain). */
const longest = 253;
const hashLength = 16;

/**
 * A name for an object that belongs to another: that one's name and a hash of what tells it from its siblings. Valid
 * however long that name is, and different for names that begin alike.
 */
export function siblingName(name: string, ...distinct: readonly string[]): string {
  const hash = createHash('sha256').update(JSON.stringify([name, ...distinct]));
  // A cut may leave a dot or a dash at the end, after which no dot may come.
  const beginning = name.slice(0, longest - hashLength - 1).replace(/[^a-z0-9]+$/, '');
  return `${beginning}.${hash.digest('hex').slice(0, hashLength)}`;
}
