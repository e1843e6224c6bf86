create index video_holds_spreading on video_holds (placed_at) where lifted_at is null and effective_at is null;
create index video_holds_to_copy on video_holds (id) where (lifted_at is null) = (copied_at is null);
