-- Apart from the change: this reads the whole table, under a lock that lets everybody read and write.
alter table encode_tasks validate constraint encode_tasks_kind_check;
