import { type Branding, type ProjectPlaybackState } from '@millrace/contract';

/** As stored with a project; fields that were never set are absent. */
export type StoredBranding = Partial<Branding>;

/** How players look that nothing brands. */
const serviceBranding: Branding = { hideLogo: false, primaryColor: null, logoUrl: null };

/** The branding of a project, by whether its account's plan has white label. */
export const effectiveBranding = (stored: StoredBranding, whiteLabel: boolean): Branding =>
  whiteLabel ? { ...serviceBranding, ...stored } : serviceBranding;

/** What the CDN knows of a project: its branding as stored; the account's state says whether it has effect. */
export const projectPlaybackStateOf = (row: {
  id: string;
  version: number;
  branding: StoredBranding;
}): ProjectPlaybackState => ({
  projectId: row.id,
  version: row.version,
  branding: effectiveBranding(row.branding, true),
});
