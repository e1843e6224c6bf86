import { probePort } from '@millrace/platform';
import { type BrowserContext } from 'playwright-core';
import { type StartedStack, startStack } from '../../demo/stack.ts';
import { launchChromium } from '../../testing/chromium.ts';
import { type Front, startFront } from '../front.ts';

export const api = 'https://api.example.net';
/** The dashboard host, a site beside it, and one that has nothing to do with it. */
export const dashboard = 'https://app.example.net';
export const sibling = 'https://blog.example.net';
export const stranger = 'https://evil.example.com';

/** The service as it is deployed, TLS and a name for each part, and a real browser. */
export interface Office {
  stack: StartedStack;
  /** Where the API listens, without TLS. */
  apiAddress: string;
  front: Front;
  context: BrowserContext;
  close(): Promise<void>;
}

export async function openOffice(): Promise<Office> {
  const [apiPort, cdnPort] = [await probePort('127.0.0.1'), await probePort('127.0.0.1')];
  const env = {
    ...{ API_URL: api, API_PORT: String(apiPort) },
    ...{ CDN_URL: 'https://cdn.example.net', CDN_PORT: String(cdnPort) },
    DASHBOARD_HOSTS: new URL(dashboard).host,
    ENCODER_PRESET: 'ultrafast',
    // Whoever has set up a real provider: not here.
    ...{ SSO_GOOGLE_CLIENT_ID: undefined, SSO_MICROSOFT_CLIENT_ID: undefined, DASHBOARD_URL: undefined },
  };
  const stack = await startStack({ env, signal: new AbortController().signal });
  const apiAddress = `http://127.0.0.1:${apiPort}`;
  const services = {
    'api.example.net': apiAddress,
    'app.example.net': apiAddress,
    'cdn.example.net': `http://127.0.0.1:${cdnPort}`,
  };
  const blank = '<!doctype html><html lang="en"><title>Another site</title><body></body></html>';
  const front = await startFront(services, (path) =>
    Promise.resolve(path === '/' ? { type: 'text/html', body: blank } : null),
  );
  // The identity provider is met at its own address.
  const rules = ['net', 'com'].map((top) => `MAP *.example.${top} 127.0.0.1:${front.port}`).join(', ');
  const browser = await launchChromium([
    `--host-resolver-rules=${rules}`,
    `--ignore-certificate-errors-spki-list=${front.spki}`,
  ]);
  const context = await browser.newContext({ viewport: { width: 1_000, height: 800 } });
  // A busy machine is slow.
  context.setDefaultTimeout(60_000);
  return {
    ...{ stack, apiAddress, front, context },
    async close() {
      await browser.close();
      await front.close();
      await stack.stop();
    },
  };
}
