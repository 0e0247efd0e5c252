/* What is true of one Lua state's interpreter, found out once (lua_calibrate.c). */
#ifndef LUA_RUNTIME_H
#define LUA_RUNTIME_H

#include "clock.h"
#include "lua_abi.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct NativeName {
  const void *key;
  char name[48]; /* as people say it: string.rep, print */
} NativeName;

#define NATIVE_NAMES_MOST 512

typedef struct LuaRuntime {
  lua_State *L;         /* main coroutine */
  const void *registry; /* the same for all coroutines of a state */
  ClockKind clock;
  uint64_t first_ticks, first_monotonic_ns; /* read together, before calibration */
  double ns_per_tick;
  uint64_t line_event_ticks_x16, call_event_ticks_x16; /* what an event costs; 0: not measured */
  bool layout_is_known;                                /* lua_layout.h holds */
  uint8_t call_opcode;                                 /* LuaJIT: of CALL */
  bool coroutines_are_known;                           /* the running one can be found from outside */
  NativeName *names;                                   /* of what the loaded libraries held when the agent was armed */
  int name_count;
  lua_CFunction resume, wrapped; /* coroutine.resume, and what coroutine.wrap returns */
} LuaRuntime;

/* 'costs': also what events of a tracer cost. */
void LUA_NAME(runtime_learn)(LuaRuntime *runtime, lua_State *L, bool costs);

/* The coroutine at work, also from a signal handler: follows coroutine.resume and
** coroutine.wrap down from the main one.  'chain' gets those on the way, main first;
** 'in_native' tells whether the last is in a C function.  PUC Lua only. */
#define RUNNING_MOST 256
int LUA_NAME(running_coroutines)(const LuaRuntime *runtime, lua_State **chain, bool *in_native);

#endif
