import { totalmem } from 'node:os';

const MIB = 1024 * 1024;

/**
 * PostgreSQL's settings for one machine that it shares with everything else, as `-c` arguments: they win over any
 * file in the data folder. What makes commits durable is spelled out, since nothing else keeps the record.
 */
export function settings(port: number, memoryBytes: number = usableMemory()): string[] {
  const sharedBuffers = Math.min(512, Math.max(64, Math.floor(memoryBytes / MIB / 16)));
  const values: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '120',

    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',

    shared_buffers: `${sharedBuffers}MB`,
    effective_cache_size: `${Math.max(128, Math.floor(memoryBytes / MIB / 2))}MB`,
    work_mem: '8MB',
    maintenance_work_mem: '64MB',
    max_wal_size: '1GB',
    jit: 'off',
    timezone: 'UTC',

    log_timezone: 'UTC',
    log_checkpoints: 'off',
    // Neither statements nor values: both may hold what must not be in a log.
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    log_parameter_max_length: '0',
  };
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** Bytes of memory of this machine, or of the container's limit. */
function usableMemory(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
