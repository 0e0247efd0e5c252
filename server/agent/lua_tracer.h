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

#include <stdbool.h>
#include <stdint.h>

#define TRACER_MOST_STACKS (1u << 16) /* shadow stacks kept; the older half is given up beyond */
#define TRACER_DEPTHS 65536u          /* LuaJIT: places on a stack, see layout_frame */

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

typedef struct SourceEntry {
  uint64_t hash;
  uint32_t row;
  bool transient;
} SourceEntry;

typedef struct Tracer {
  /* read and written at every event */
  lua_State *running; /* coroutine of the last event; NULL: none yet, or closed */
  Frame *top;
  uint64_t *line;      /* slot that time goes to */
  uint64_t last_ticks; /* clock at the last event */
  Node *row;
  uint64_t row_ticks; /* clock up to which 'row' has been charged */
  ShadowStack *stack;
  const void *last_key; /* hits alone: function of the last line event, … */
  uint64_t last_guard;
  uint64_t *last_slots; /* … and its run of slots */
  uint32_t last_line_before, last_slot_count;
  bool returned; /* LuaJIT: a return came after the last line event */

  CallTree tree;
  HeatFile file;
  ClockKind clock;
  int mask; /* events that are counted */
  bool layout_is_known;
  bool closed;
  lua_State *L;         /* main coroutine */
  const void *registry; /* the same for all coroutines of a state */
  ShadowStack **stacks; /* open addressing by L */
  uint64_t stack_mask, stack_count, switches;
  Node *resumer_row; /* what was at work before the last switch */
  uint64_t *resumer_line;
  SourceEntry *sources; /* open addressing by hash */
  uint64_t source_mask, source_count;
  uint64_t epoch;         /* counts new sources that come from no file */
  uint64_t **depth_lines; /* LuaJIT, hits alone: slot at work at each place of the stack; NULL elsewhere */
  uintptr_t last_depth;
  uint64_t gap_ticks, gap_cpu_ns; /* clock and CPU clock when they were compared last */
  double ns_per_tick;
  struct Tracer *next; /* of this process */
} Tracer;

typedef struct TracerSettings {
  const char *path; /* heat file; NULL: one without a name */
  const char *mode; /* "trace" or "coverage" */
} TracerSettings;

/* NULL, or one line that says why not.  Nothing is hooked yet. */
const char *LUA_NAME(tracer_open)(Tracer *tracer, lua_State *L, const TracerSettings *settings);
/* Recording begins with the next chunk that is called. */
void LUA_NAME(tracer_await_script)(Tracer *tracer);
/* Recording begins now, in the coroutine L. */
void LUA_NAME(tracer_begin)(Tracer *tracer, lua_State *L);
/* Everything counted so far is in the file; state stopped.  Makes no call into Lua. */
void LUA_NAME(tracer_end)(Tracer *tracer);
void LUA_NAME(tracer_close)(Tracer *tracer);
/* The tracers of this process, for events of a state that is not the last one, for fork and exit. */
void LUA_NAME(tracer_enlist)(Tracer *tracer);
Tracer *LUA_NAME(tracer_first)(void);
void LUA_NAME(tracer_forked)(Tracer *tracer);
/* Makes 'tracer' the one whose events come on this thread. */
Tracer *LUA_NAME(tracer_make_current)(Tracer *tracer);

/* lua_calibrate.c: does the layout hold, and what does an event cost? */
void LUA_NAME(tracer_calibrate)(Tracer *tracer);
/* lua_function.c: the function that runs in ar's frame, known under key from now on. */
Function *LUA_NAME(tracer_function)(Tracer *tracer, lua_State *L, lua_Debug *ar, const void *key);
/* Is 'key' still the function it was? */
bool LUA_NAME(tracer_same_function)(Tracer *tracer, lua_State *L, lua_Debug *ar, const KeyEntry *entry);

#endif
