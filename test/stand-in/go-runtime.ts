// The go_* and process_* families of every Go exporter, with values of this process where Node knows them,
// else recorded ones: they give a body its real size and shape.

import { readdirSync, readFileSync } from 'node:fs';
import { cpuUsage, memoryUsage, uptime } from 'node:process';
import { type Family, formatLabels, makeGauge } from '../../src/exposition/exposition-text.ts';

/** The families as of now, named and described as in the recordings of exporter 0.5.0. */
export function readRuntimeFamilies(startedAtSeconds: number): Family[] {
  const memory = memoryUsage();
  const cpu = cpuUsage();
  const openFds = countOpenFds();
  const virtualBytes = readVirtualBytes();
  const heapIdleBytes = memory.heapTotal - memory.heapUsed;
  const pause = 0.000_085_61;
  return [
    {
      name: 'go_gc_duration_seconds',
      help: 'A summary of the pause duration of garbage collection cycles.',
      type: 'summary',
      samples: [
        ...['0', '0.25', '0.5', '0.75', '1'].map((quantile) => ({
          labels: formatLabels([['quantile', quantile]]),
          value: pause,
        })),
        { labels: '', value: pause, suffix: '_sum' },
        { labels: '', value: 1, suffix: '_count' },
      ],
    },
    one('go_goroutines', 'Number of goroutines that currently exist.', 9),
    {
      name: 'go_info',
      help: 'Information about the Go environment.',
      type: 'gauge',
      samples: [{ labels: formatLabels([['version', GO_VERSION]]), value: 1 }],
    },
    one('go_memstats_alloc_bytes', 'Number of bytes allocated and still in use.', memory.heapUsed),
    one('go_memstats_alloc_bytes_total', 'Total number of bytes allocated, even if freed.', memory.heapTotal),
    one('go_memstats_buck_hash_sys_bytes', 'Number of bytes used by the profiling bucket hash table.', 1_444_086),
    one('go_memstats_frees_total', 'Total number of frees.', 21_493),
    one(
      'go_memstats_gc_cpu_fraction',
      "The fraction of this program's available CPU time used by the GC since the program started.",
      5.742148928623259e-5,
    ),
    one('go_memstats_gc_sys_bytes', 'Number of bytes used for garbage collection system metadata.', 3_060_976),
    one('go_memstats_heap_alloc_bytes', 'Number of heap bytes allocated and still in use.', memory.heapUsed),
    one('go_memstats_heap_idle_bytes', 'Number of heap bytes waiting to be used.', heapIdleBytes),
    one('go_memstats_heap_inuse_bytes', 'Number of heap bytes that are in use.', memory.heapUsed),
    one('go_memstats_heap_objects', 'Number of allocated objects.', 22_652),
    one('go_memstats_heap_released_bytes', 'Number of heap bytes released to OS.', heapIdleBytes),
    one('go_memstats_heap_sys_bytes', 'Number of heap bytes obtained from system.', memory.heapTotal),
    one(
      'go_memstats_last_gc_time_seconds',
      'Number of seconds since 1970 of last garbage collection.',
      startedAtSeconds,
    ),
    one('go_memstats_lookups_total', 'Total number of pointer lookups.', 0),
    one('go_memstats_mallocs_total', 'Total number of mallocs.', 44_145),
    one('go_memstats_mcache_inuse_bytes', 'Number of bytes in use by mcache structures.', 4_592),
    one('go_memstats_mcache_sys_bytes', 'Number of bytes used for mcache structures obtained from system.', 16_072),
    one('go_memstats_mspan_inuse_bytes', 'Number of bytes in use by mspan structures.', 74_240),
    one('go_memstats_mspan_sys_bytes', 'Number of bytes used for mspan structures obtained from system.', 81_600),
    one('go_memstats_next_gc_bytes', 'Number of heap bytes when next garbage collection will take place.', 4_194_304),
    one('go_memstats_other_sys_bytes', 'Number of bytes used for other system allocations.', 712_090),
    one('go_memstats_stack_inuse_bytes', 'Number of bytes in use by the stack allocator.', 458_752),
    one('go_memstats_stack_sys_bytes', 'Number of bytes obtained from system for stack allocator.', 458_752),
    one('go_memstats_sys_bytes', 'Number of bytes obtained from system.', memory.rss),
    one('go_threads', 'Number of OS threads created.', 5),
    one(
      'process_cpu_seconds_total',
      'Total user and system CPU time spent in seconds.',
      Math.round((cpu.user + cpu.system) / 10_000) / 100,
    ),
    one('process_max_fds', 'Maximum number of open file descriptors.', 20_000),
    one('process_open_fds', 'Number of open file descriptors.', openFds),
    one('process_resident_memory_bytes', 'Resident memory size in bytes.', memory.rss),
    one('process_start_time_seconds', 'Start time of the process since unix epoch in seconds.', startedAtSeconds),
    one('process_virtual_memory_bytes', 'Virtual memory size in bytes.', virtualBytes),
    one(
      'process_virtual_memory_max_bytes',
      'Maximum amount of virtual memory available in bytes.',
      18_446_744_073_709_552_000,
    ),
  ];
}

/** What `go_info` and `locustexporter_build_info` say: the Go that built the recorded exporters. */
export const GO_VERSION = 'go1.26.8';

/** The start of this process, seconds since 1970, to the hundredth as Linux has it. */
export function readStartSeconds(nowSeconds: number): number {
  return Math.round((nowSeconds - uptime()) * 100) / 100;
}

function countOpenFds(): number {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return 9;
  }
}

function readVirtualBytes(): number {
  try {
    // Field 1 of statm is the size in pages of 4 KiB (proc_pid_statm(5)).
    return Number(readFileSync('/proc/self/statm', 'utf8').split(' ')[0]) * 4_096;
  } catch {
    return 1_301_794_816;
  }
}

/** One sample without labels; client_golang names its counters `_total`. */
function one(name: string, help: string, value: number): Family {
  return { ...makeGauge(name, help, value), type: name.endsWith('_total') ? 'counter' : 'gauge' };
}
