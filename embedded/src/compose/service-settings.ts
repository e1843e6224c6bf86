import { type Secrets } from '../data-folder/secrets.ts';

/** Where services are that know each other, and what they share. */
export interface ServicePlaces {
  /** Address that every port is opened on. */
  host: string;
  ports: { api: number; internal: number; cdn: number };
  /** Public addresses. */
  urls: { api: string; cdn: string; docs: string };
  secrets: Secrets;
}

/** What a data folder decides of its services' settings: places, keys and secrets. */
export const serviceSettings = ({ host, ports, urls, secrets }: ServicePlaces): Record<string, string> => ({
  API_HOST: host,
  API_PORT: String(ports.api),
  API_INTERNAL_HOST: host,
  API_INTERNAL_PORT: String(ports.internal),
  CDN_HOST: host,
  CDN_PORT: String(ports.cdn),
  API_URL: urls.api,
  CDN_URL: urls.cdn,
  DOCS_URL: urls.docs,
  CURSOR_KEYS: secrets.cursorKeys,
  PLAYBACK_KEYS: secrets.playbackKeys,
  UPLOAD_TOKEN_KEYS: secrets.uploadTokenKeys,
  WEBHOOK_SECRET_KEYS: secrets.webhookSecretKeys,
  SIGN_IN_KEYS: secrets.signInKeys,
  PHONE_KEYS: secrets.phoneKeys,
  ADMIN_TOKEN: secrets.adminToken,
  INTERNAL_SECRET: secrets.internalSecret,
});
