// What the Node of the binary runs with.

/**
 * The flags of the built-in Node. "Gains" as in bundle.ts; of the CPU time of a minute of watching. None changes what the program
 * does: were one wrong, it would be slower or larger, if nothing else is said. A flag that Node or V8 does not know ends the
 * program at its start, with exit code 9. undici needs WebAssembly, which rules out --jitless and --lite-mode.
 */
export const FLAGS = [
  // Gains 7 % of the anonymous memory, for a fifth more CPU time.
  '--optimize-for-size',
  // No TurboFan: gains 12 % of the resident memory, 4 % of the anonymous, 9 % of the CPU time.
  '--no-opt',
  // Gains 6 % of the resident memory, 5 % of the anonymous (with an exposition of 3 MB: 20 %), 11 % of the CPU time.
  '--no-maglev',
  // Gains 6 % of the anonymous memory, 4 % of the CPU time.
  '--no-sparkplug',
  // llhttp is compiled once, and not optimised in the background: gains 44 % of the anonymous memory, 21 % of the resident.
  '--liftoff-only',
  // Gains three of six threads; Node takes no fewer than one.
  '--v8-pool-size=1',
  // No inspector by SIGUSR1, which another container may send where the pod shares a process namespace. Gains one of four threads.
  '--disable-sigusr1',
  // Gains nothing while all is well. A heap that reads 64 MiB of exposition; a leak ends in V8's "out of memory", which names it,
  // before a memory limit of 64Mi is reached. Were it too small, a large exposition would end so.
  '--max-old-space-size=48',
  // A young generation of 1 MB: gains 15 % of the anonymous memory with an exposition of 3 MB, whose pieces are collected while
  // it is read.
  '--scavenger-max-new-space-capacity-mb=1',
  // Collects the young generation when 30 % of it is used, not 80 %: a buffer of 64 KB for every piece of a body waits for that.
  // Gains 8 % of the anonymous memory, 2 % of the resident. With 20 % it is 11 %, but nothing at 3 MB, and more CPU time.
  '--minor-gc-task-trigger=30',
  // The thread that reads frees these buffers itself: gains 5 % of the anonymous memory with an exposition of 3 MB, 3 % of the CPU time.
  '--single-threaded-gc',
  // A front has what zlib left behind collected (src/snapshot/chunks.ts); nothing else asks for it. Gains 40 % of the anonymous memory of
  // a front with an exposition of 3 MB.
  '--expose-gc',
];
