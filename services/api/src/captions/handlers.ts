import { ProblemError } from '@millrace/contract';
import { canonicalLanguage, CaptionsError, languageName, normaliseCaptions } from '@millrace/domain';
import {
  captionsKey,
  type CaptionsPlace,
  captionsResource,
  listCaptions,
  openCaptionsPrefix,
  removeCaptions,
  setCaptions,
} from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';

type CaptionsHandlers = Pick<ApiHandlers, 'listCaptions' | 'putCaptions' | 'deleteCaptions'>;

export const captionsHandlers = ({ store, objects }: FeatureDeps): CaptionsHandlers => ({
  listCaptions: async ({ project, params }) => {
    const rows = await listCaptions(store, project.id, params.videoId);
    if (rows === null) throw new ProblemError('not_found');
    return { data: rows.map(captionsResource) };
  },

  putCaptions: async ({ project, params, headers, raw, signal }) => {
    if (headers['content-encoding'] !== undefined) {
      throw new ProblemError('unsupported_media_type', {
        detail: 'The body must have no Content-Encoding.',
      });
    }
    const place = placeOf(project.id, params);
    const file = Buffer.from(webVttOf(raw));
    const prefix = await store.transaction((tx) => openCaptionsPrefix(tx, place));
    await objects.put(captionsKey(prefix, place.language), file, { signal });
    const name = languageName(place.language);
    return captionsResource(
      await store.transaction((tx) => setCaptions(tx, place, { prefix, name, bytes: file.length })),
    );
  },

  deleteCaptions: async ({ project, params }) => {
    await store.transaction((tx) => removeCaptions(tx, placeOf(project.id, params)));
    return undefined;
  },
});

function placeOf(projectId: string, params: { videoId: string; language: string }): CaptionsPlace {
  const language = canonicalLanguage(params.language);
  if (language === null) throw invalid('language', 'is not a BCP 47 tag of a language');
  return { projectId, videoId: params.videoId, language };
}

function webVttOf(raw: Buffer): string {
  try {
    return normaliseCaptions(raw);
  } catch (error) {
    if (error instanceof CaptionsError) throw invalid('body', `is no WebVTT or SRT file: ${error.message}`);
    throw error;
  }
}

const invalid = (path: string, message: string): ProblemError =>
  new ProblemError('invalid_request', {
    detail: `The ${path} ${message}.`,
    errors: [{ path, message }],
  });
