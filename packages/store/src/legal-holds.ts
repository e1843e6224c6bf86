/**
 * SQL: whether a video stands under a legal hold, so that none of its files may go (contract "Holds", HLD-009). Whoever
 * deletes objects asks when it does so: a hold may come after they were given up.
 * @param videoId the video's id, in SQL
 */
export const underLegalHold = (videoId: string): string =>
  `exists (select from video_holds h where h.video_id = ${videoId} and h.legal and h.lifted_at is null)`;
