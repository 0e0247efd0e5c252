/* The sampler: looks at the stack of one Lua state at every tick of a timer.
**
** PUC Lua: the tick may arrive anywhere, so it only asks for a hook in the
** coroutine that is at work; Lua calls the hook at its next safe point, and
** there the stack is read.  How late that is tells what was going on: in a C
** function the hook comes when it returns, in the collector when it is done.
** LuaJIT does the same with a profiler of its own, which it lends to us. */
#ifndef LUA_SAMPLER_H
#define LUA_SAMPLER_H

#include "frametree.h"
#include "lua_function.h"
#include "lua_runtime.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define SAMPLER_MOST_DEPTH 512u /* frames of one coroutine; of deeper stacks the innermost are kept */
#define SAMPLER_LATE_NS 30000u  /* later than this is no ordinary instruction: the collector, most likely */

enum { VM_INTERPRETED = 0, VM_NATIVE = 1, VM_C = 2, VM_GC = 3, VM_JIT = 4, VM_STATES = 5 };

typedef struct Sampler {
  HeatFile *file;
  const LuaRuntime *runtime;
  LuaFunctions functions;
  FrameTree frames;
  uint64_t *root_samples;
  uint64_t interval_ns;                     /* of the ticks */
  uint64_t counted_cpu_ns;                  /* CPU time up to which ticks have been counted */
  volatile uint32_t pending_lua, pending_c; /* ticks since the last sample, by what they met */
  volatile uint64_t first_pending_ticks;    /* clock at the first of them */
} Sampler;

bool LUA_NAME(sampler_open)(Sampler *sampler, const LuaRuntime *runtime, HeatFile *file); /* false: no memory or disk */
void LUA_NAME(sampler_close)(Sampler *sampler);
/* A tick, in the signal handler: as many as the thread has had CPU time for. */
void LUA_NAME(sampler_tick)(Sampler *sampler, bool in_native);
/* Ticks that the thread has had CPU time for since the last time this was asked. */
uint32_t LUA_NAME(sampler_ticks)(Sampler *sampler);
/* From here on ticks count. */
void LUA_NAME(sampler_begin)(Sampler *sampler, uint64_t interval_ns);
/* At a safe point: one sample of all ticks that are pending; what tick and sample took, 0 if that cannot be told. */
uint64_t LUA_NAME(sampler_sample)(Sampler *sampler, lua_State **chain, int count);
/* The same with a weight and a state that the runtime has told. */
void LUA_NAME(sampler_count)(Sampler *sampler, lua_State **chain, int count, uint32_t ticks, int vm_state);

#endif
