-- What was placed before the CDN's confirmations were kept is not asked for.
update video_holds set seen_at = placed_at, effective_at = placed_at where lifted_at is null and effective_at is null;
