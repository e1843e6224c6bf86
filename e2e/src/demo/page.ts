import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import { type AddressInfo } from 'node:net';
import { type PlaybackTokenResource as PlaybackToken } from '@millrace/contract';
import { createTestCertificate } from '@millrace/testing';

/** A page of the customer's that shows a video. */
export interface Shop {
  /** The host of the page, which the tokens are for. */
  domain: string;
  token: PlaybackToken;
  /** Asks the API for another token for the same video and domain. */
  renew(): Promise<PlaybackToken>;
}

export interface ShopPage {
  /** `https://{domain}/`. */
  url: string;
  /** What makes Chromium find the page on this machine, and believe its certificate. */
  browserFlags: readonly string[];
  stop(): Promise<void>;
}

/** Serves the customer's page over TLS on a free loopback port, with a certificate of its own. */
export async function startShopPage({ domain, token, renew }: Shop): Promise<ShopPage> {
  const { cert, key } = await createTestCertificate(`DNS:${domain}`);
  const page = pageOf(token.embedUrl);
  const answers: Record<string, () => Promise<{ type: string; body: string }>> = {
    'GET /': () => Promise.resolve({ type: 'text/html; charset=utf-8', body: page }),
    'POST /token': async () => {
      const fresh = await renew();
      const body = JSON.stringify({ token: fresh.token, expiresAt: fresh.expiresAt });
      return { type: 'application/json', body };
    },
  };
  const server = createServer({ cert, key }, (request, response) => {
    const answer = answers[`${request.method ?? ''} ${request.url ?? ''}`];
    if (answer === undefined) {
      response.writeHead(404).end();
      return;
    }
    answer().then(
      ({ type, body }) =>
        response.writeHead(200, { 'Content-Type': type, 'Cache-Control': 'no-store' }).end(body),
      () => response.writeHead(502).end(),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const publicKey = new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' });
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://${domain}/`,
    browserFlags: [
      `--host-resolver-rules=MAP ${domain} 127.0.0.1:${port}`,
      `--ignore-certificate-errors-spki-list=${createHash('sha256').update(publicKey).digest('base64')}`,
    ],
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** As docs/player.md describes it: a frame, and an answer when its player asks for a token. */
const pageOf = (embedUrl: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>A customer’s page</title>
<link rel="icon" href="data:,">
<style>body { margin: 4vh auto; max-width: 60rem; font: 1rem/1.5 system-ui, sans-serif }
iframe { width: 100%; aspect-ratio: 16 / 9; border: 0 }</style>
<h1>A customer’s page</h1>
<iframe title="Video" src="${embedUrl}" allow="autoplay; fullscreen; picture-in-picture"></iframe>
<script>
  const player = document.querySelector('iframe');
  addEventListener('message', async ({ source, origin, data }) => {
    if (source !== player.contentWindow || origin !== new URL(player.src).origin) return;
    if (data.type !== 'millrace:token-request') return;
    const fresh = await (await fetch('/token', { method: 'POST' })).json();
    source.postMessage({ type: 'millrace:token', v: 1, videoId: data.videoId, ...fresh }, origin);
  });
</script>
`;
