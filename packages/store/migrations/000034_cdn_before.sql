-- Processes of a release that does not confirm may serve on while this one is rolled out: for an hour a hold is proven
-- by time too. In a database without videos there are none.
insert into cdn_processes (boot_id, confirmed_up_to, seen_at, cut_off)
select 'before', to_timestamp(0), clock_timestamp(), true where exists (select from videos);
