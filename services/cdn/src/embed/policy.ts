import { type FlatHeaders } from '../http/exchange.ts';

/** What a page must be allowed, beyond its own files. */
export interface PolicyOptions {
  /** The token's domain, the only one that may frame the page; null: nobody may. */
  domain: string | null;
  /** The customer's logo. */
  logoUrl: string | null;
}

/** The URL standard lets `;`, `,` and `*` into a host, which say something else in a policy. */
const plainOrigin = /^https:\/\/[a-z0-9.-]+(:[0-9]+)?$/;

/**
 * The headers that keep a page within its bounds (contract EMB-203 to EMB-206). No inline script or style, no request
 * but to the CDN itself; `blob:` is what media source extensions play from. The referrer must be sent: it is all
 * that tells the CDN of the player's requests where they come from.
 */
export function policyHeaders({ domain, logoUrl }: PolicyOptions): FlatHeaders {
  const origin = logoUrl === null ? '' : (URL.parse(logoUrl)?.origin ?? '');
  const logo = plainOrigin.test(origin) ? ` ${origin}` : '';
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self'${logo}`,
    "media-src 'self' blob:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    `frame-ancestors ${domain === null ? "'none'" : `https://${domain}`}`,
  ];
  return [
    ...['Content-Security-Policy', policy.join('; ')],
    ...['Referrer-Policy', 'strict-origin'],
    // Whether it may play by itself, fill the screen or float is the embedder's to say (`allow` of its iframe).
    ...[
      'Permissions-Policy',
      'camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), midi=()',
    ],
  ];
}
