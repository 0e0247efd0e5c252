/* Ticks: the cheapest clock that can be trusted.
**
** The time-stamp counter where it runs at one rate on all cores (10 ns a
** read), else the monotonic clock (25 ns or more).  Which one is a constant
** of the hook that reads it, so that no event pays for the choice. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

typedef enum ClockKind { CLOCK_KIND_MONOTONIC, CLOCK_KIND_TSC } ClockKind;

uint64_t clock_monotonic_ns(void);
uint64_t clock_wall_ns(void);       /* since the epoch */
uint64_t clock_thread_cpu_ns(void); /* CPU time of the calling thread; slow (650 ns) */
bool clock_tsc_is_invariant(void);

static inline uint64_t clock_ticks(ClockKind kind)
{
#if defined(__x86_64__)
  if (kind == CLOCK_KIND_TSC) return __rdtsc();
#endif
  (void)kind;
  return clock_monotonic_ns();
}

#endif
