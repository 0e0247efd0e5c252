/* The exact tracer: counts every line, call and return of one Lua state.
**
**   hook ─▶ which frame?  top of a shadow stack, one for each coroutine
**        ─▶ which line?   a slot of that frame's run
**        ─▶ time since the last event goes to the line that was at work
**
** A line event in the running frame makes no API call: it compares the frame,
** indexes the run, reads the clock and adds.  Everything else is for calls,
** returns and what interrupts them: errors, tail calls, coroutine switches.
**
** Compiled once for each ABI.  All state hangs off the Lua state that armed
** the agent; 'tracer' of a thread is only a cache of the one used last. */
#ifndef LUA_TRACER_H
#define LUA_TRACER_H

#include "calltree.h"
#include "clock.h"
#include "heatfile.h"
#include "lua_abi.h"
#include "lua_function.h"
#include "lua_runtime.h"

#include <stdbool.h>
#include <stdint.h>

#define TRACER_MOST_STACKS (1u << 16) /* shadow stacks kept; the older half is given up beyond */

typedef struct Frame {
  uintptr_t id; /* layout_frame; 0 at the bottom */
  Node *node;
  uint64_t *line; /* slot at work, saved while a callee runs */
} Frame;

typedef struct ShadowStack {
  lua_State *L;
  Frame *bottom;    /* what resumed this coroutine: row and line */
  Frame *top, *end; /* of all but the running one; the last frame's place is never used */
  uint64_t used;    /* number of the switch that entered it last */
} ShadowStack;

/* A function and its run of slots, known again by its key. */
typedef struct HitRun {
  const void *key; /* NULL: to be asked for each time */
  uint64_t guard;
  uint64_t *slots;
  uint32_t line_before, slot_count;
} HitRun;

typedef struct Tracer {
  /* read and written at every event */
  lua_State *running; /* coroutine of the last event; NULL: none yet, or closed */
  Frame *top;
  uint64_t *line;      /* slot that time goes to */
  uint64_t last_ticks; /* clock at the last event */
  Node *row;
  uint64_t row_ticks; /* clock up to which 'row' has been charged */
  ShadowStack *stack;
  HitRun last, other;   /* hits alone: function of the last line event, and of the one before it */
  bool returned;        /* LuaJIT: a return came after the last line event */
  uintptr_t last_depth; /* LuaJIT, hits alone: place on the stack of the last event */

  HeatHeader *header;
  HeatFile *file;
  const LuaRuntime *runtime;
  ClockKind clock; /* of runtime, close at hand */
  int mask;        /* events that are counted */
  CallTree tree;
  LuaFunctions functions;
  uint64_t files_seen;  /* functions.files when edges were last forgotten */
  ShadowStack **stacks; /* open addressing by L */
  uint64_t stack_mask, stack_count, switches;
  Node *resumer_row; /* what was at work before the last switch */
  uint64_t *resumer_line;
  uint64_t gap_ticks, gap_cpu_ns; /* clock and CPU clock when they were compared last */
  struct Tracer *next;            /* of this process */
} Tracer;

/* False: out of memory or disk.  Nothing is hooked yet.  'file' has a HEAT_LINE of one column for hits alone. */
bool LUA_NAME(tracer_open)(Tracer *tracer, const LuaRuntime *runtime, HeatFile *file);
void LUA_NAME(tracer_close)(Tracer *tracer);
/* Counts from here on, in the coroutine L, which is at work. */
void LUA_NAME(tracer_begin)(Tracer *tracer, lua_State *L);
/* After tracer_begin in mid-run, in a hook: the frames of L that are open. */
void LUA_NAME(tracer_adopt)(Tracer *tracer, lua_State *L);
/* Counts nothing from here on.  Everything counted so far is in the file.  Makes no call into Lua. */
void LUA_NAME(tracer_end)(Tracer *tracer);
lua_Hook LUA_NAME(tracer_hook)(const Tracer *tracer);

/* Tracers that were enlisted are found by the state of an event, and never freed. */
void LUA_NAME(tracer_enlist)(Tracer *tracer);
void LUA_NAME(tracer_forked)(Tracer *tracer); /* the child counts from zero; its file is ready */
/* Makes 'tracer' the one whose events come on this thread; returns the one before. */
Tracer *LUA_NAME(tracer_make_current)(Tracer *tracer);

#endif
