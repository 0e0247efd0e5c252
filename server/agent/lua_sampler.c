#define _GNU_SOURCE
#include "lua_sampler.h"

#include "lua_layout.h"

#include <string.h>

/* ---- Stacks ---------------------------------------------------------------- */

typedef struct StackFrame {
  uint32_t function; /* row in HEAT_FUNCTION */
  uint32_t line;     /* 0: none */
  bool native;
} StackFrame;

static const void *key_at(const Sampler *s, lua_State *L, lua_Debug *ar)
{
  if (s->functions.layout_is_known) return layout_function_at(L, ar);
  lua_getinfo(L, "f", ar);
  const void *key = lua_topointer(L, -1);
  lua_pop(L, 1);
  return key;
}

/* The next outer frame; lua_getstack would walk there from the top each time. */
static bool next_outer(const Sampler *s, lua_State *L, int level, lua_Debug *ar)
{
#if LUA_IS_51
  (void)s;
#if LUA_ABI == 501
  if (s->functions.layout_is_known && ar->i_ci > 0) {
    ar->i_ci--;
    return ar->i_ci > 0;
  }
#endif
  return lua_getstack(L, level, ar);
#else
  if (!s->functions.layout_is_known) return lua_getstack(L, level, ar);
  void *outer = (void *)(uintptr_t)layout_pointer(ar->i_ci, LAYOUT_CI_PREVIOUS);
  ar->i_ci = outer;
  return outer && layout_pointer(outer, LAYOUT_CI_PREVIOUS); /* the first has no function */
#endif
}

/* Innermost first; the number of frames. */
static uint32_t read_stack(Sampler *s, lua_State *L, StackFrame *frames)
{
  lua_Debug ar;
  uint32_t depth = 0;
  if (!lua_getstack(L, 0, &ar)) return 0;
  do {
    if (depth == SAMPLER_MOST_DEPTH) {
      s->file->header->cut_stacks++;
      break;
    }
    lua_getinfo(L, "l", &ar);
    Function *f = LUA_NAME(function_of)(&s->functions, L, &ar, key_at(s, L, &ar));
    frames[depth++] = (StackFrame){f->row, ar.currentline > 0 ? (uint32_t)ar.currentline : 0, f->native};
  } while (next_outer(s, L, (int)depth, &ar));
  return depth;
}

/* ---- Samples --------------------------------------------------------------- */

static uint64_t heap_bytes(lua_State *L)
{
  return (uint64_t)lua_gc(L, LUA_GCCOUNT, 0) * 1024u + (uint64_t)lua_gc(L, LUA_GCCOUNTB, 0);
}

void LUA_NAME(sampler_count)(Sampler *s, lua_State **chain, int count, uint32_t ticks, int vm_state)
{
  StackFrame frames[SAMPLER_MOST_DEPTH];
  uint64_t *samples = s->root_samples;
  uint32_t row = 0;
  for (int i = 0; i < count; i++) {
    uint32_t depth = read_stack(s, chain[i], frames);
    if (i == 0)
      while (depth > 0 && frames[depth - 1].native) depth--; /* the host that runs it all */
    while (depth-- > 0) row = frametree_row(&s->frames, row, frames[depth].function, frames[depth].line, &samples);
  }
  samples[vm_state] += ticks;
  s->file->header->samples += ticks;
  frametree_note_sample(&s->frames, row, heap_bytes(chain[count - 1]), clock_monotonic_ns());
}

void LUA_NAME(sampler_begin)(Sampler *s, uint64_t interval_ns)
{
  s->interval_ns = interval_ns;
  s->counted_cpu_ns = clock_thread_cpu_ns();
  s->pending_lua = s->pending_c = 0;
}

/* Ticks go on while the thread sleeps, waits or is preempted, and then come in one heap: what counts is the CPU
** time that has passed. */
uint32_t LUA_NAME(sampler_ticks)(Sampler *s)
{
  uint64_t cpu_ns = clock_thread_cpu_ns(), ns = cpu_ns - s->counted_cpu_ns;
  s->file->header->now_cpu_ns = cpu_ns;
  uint64_t ticks = (ns + s->interval_ns / 2) / s->interval_ns;
  s->counted_cpu_ns += ticks * s->interval_ns;
  return (uint32_t)ticks;
}

void LUA_NAME(sampler_tick)(Sampler *s, bool in_native)
{
  uint32_t ticks = LUA_NAME(sampler_ticks)(s);
  if (ticks == 0) return;
  if (s->pending_lua == 0 && s->pending_c == 0) s->first_pending_ticks = clock_ticks(s->runtime->clock);
  if (in_native) s->pending_c += ticks;
  else s->pending_lua += ticks;
}

/* A tick in Lua code is answered at the next instruction; a late answer was held up by the collector. */
static int state_of_lua_tick(const Sampler *s)
{
  uint64_t late = clock_ticks(s->runtime->clock) - s->first_pending_ticks;
  return (double)late * s->runtime->ns_per_tick > SAMPLER_LATE_NS ? VM_GC : VM_INTERPRETED;
}

uint64_t LUA_NAME(sampler_sample)(Sampler *s, lua_State **chain, int count)
{
  int lua_state = state_of_lua_tick(s);
  uint32_t in_c = __atomic_exchange_n(&s->pending_c, 0, __ATOMIC_RELAXED);
  uint32_t in_lua = __atomic_exchange_n(&s->pending_lua, 0, __ATOMIC_RELAXED);
  if (in_c > 0) LUA_NAME(sampler_count)(s, chain, count, in_c, VM_C);
  if (in_lua > 0) LUA_NAME(sampler_count)(s, chain, count, in_lua, lua_state);
  if (in_c > 0 || in_lua == 0) return 0;
  return (uint64_t)((double)(clock_ticks(s->runtime->clock) - s->first_pending_ticks) * s->runtime->ns_per_tick);
}

/* ---- Life ------------------------------------------------------------------ */

static void define_states(HeatFile *file)
{
  static const char *const states[VM_STATES][2] = {
      {"I", "interpreted"}, {"N", "native"}, {"C", "c"}, {"G", "gc"}, {"J", "jit"}};
  for (int i = 0; i < VM_STATES; i++)
    heatfile_row32(file, HEAT_VM_STATE,
                   (uint32_t[]){heatfile_string(file, states[i][0], 1),
                                heatfile_string(file, states[i][1], strlen(states[i][1]))});
}

bool LUA_NAME(sampler_open)(Sampler *s, const LuaRuntime *runtime, HeatFile *file)
{
  memset(s, 0, sizeof *s);
  s->file = file;
  s->runtime = runtime;
  define_states(file);
  if (!LUA_NAME(functions_open)(&s->functions, file, runtime)) return false;
  if (!frametree_open(&s->frames, file)) return false;
  s->root_samples = (uint64_t *)(file->tables[HEAT_FRAME_SAMPLES].chunk + 1);
  s->frames.last_sample_ns = clock_monotonic_ns();
  return true;
}

void LUA_NAME(sampler_close)(Sampler *s)
{
  frametree_close(&s->frames);
  LUA_NAME(functions_close)(&s->functions);
}
