#define _GNU_SOURCE
#include "lua_tracer.h"

#include "lua_layout.h"

#include <stdlib.h>
#include <string.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define RARE(x) __builtin_expect(!!(x), 0)
#define SLOW static __attribute__((noinline, cold))

#define FIRST_STACKS 64u
#define FIRST_FRAMES 8u
#define LINE_CELLS 3u     /* hits, self, off-CPU */
#define GAP_TICKS 200000u /* a longer interval is compared with the thread's CPU clock */
#define TRACE_MASK (LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE)

static const char no_space[] = "no space left for the heat file: recording ended, the program went on";

/* ---- Which tracer ---------------------------------------------------------
**
** A thread runs one Lua state nearly always, so the tracer used last is kept
** for each thread, and the hook only compares.  A process with several states
** has one tracer for each; the list only grows. */

static Tracer nobody; /* its 'running' is NULL: no event is ever its */
static _Thread_local Tracer *tracer __attribute__((tls_model("initial-exec"))) = &nobody;
static Tracer *tracers; /* pushed with compare-and-swap */

Tracer *LUA_NAME(tracer_make_current)(Tracer *t)
{
  Tracer *before = tracer;
  tracer = t ? t : &nobody;
  return before;
}

SLOW Tracer *find_tracer(lua_State *L)
{
  const void *registry = lua_topointer(L, LUA_REGISTRYINDEX);
  for (Tracer *t = __atomic_load_n(&tracers, __ATOMIC_ACQUIRE); t; t = t->next)
    if (t->registry == registry && !t->closed) return tracer = t;
  lua_sethook(L, NULL, 0, 0); /* recording is over */
  return NULL;
}

Tracer *LUA_NAME(tracer_first)(void)
{
  return __atomic_load_n(&tracers, __ATOMIC_ACQUIRE);
}

void LUA_NAME(tracer_enlist)(Tracer *t)
{
  t->next = __atomic_load_n(&tracers, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&tracers, &t->next, t, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* ---- Time -----------------------------------------------------------------
**
** Time since the last event belongs to the line that was at work.  A long
** interval may hold time off the CPU (preempted, asleep, blocked), which is
** no work of that line: what the CPU clock did not see goes beside it. */

SLOW void charge_gap(Tracer *t, uint64_t now, uint64_t ticks)
{
  uint64_t cpu_ns = clock_thread_cpu_ns();
  double wall_ns = (double)(now - t->gap_ticks) * t->ns_per_tick;
  double off_ns = wall_ns - (double)(cpu_ns - t->gap_cpu_ns);
  uint64_t off = off_ns > 0 ? (uint64_t)(off_ns / t->ns_per_tick) : 0;
  if (off > ticks) off = ticks;
  t->gap_ticks = now;
  t->gap_cpu_ns = cpu_ns;
  t->file.header->off_cpu_ticks += off;
  t->line[SLOT_SELF] += ticks - off;
  t->line[SLOT_OFF_CPU] += off;
  t->row->cost[COST_OFF_CPU] += off;
  t->row_ticks += off;
}

static inline void charge_line(Tracer *t, uint64_t now)
{
  uint64_t ticks = now - t->last_ticks;
  t->last_ticks = now;
  if (RARE(ticks > GAP_TICKS)) charge_gap(t, now, ticks);
  else t->line[SLOT_SELF] += ticks;
}

static inline void charge_row(Tracer *t, uint64_t now)
{
  t->row->cost[COST_SELF] += now - t->row_ticks;
  t->row_ticks = now;
}

static inline void enter_row(Tracer *t, Node *node)
{
  t->row = node;
  t->file.header->current_row = node->row;
}

/* Our own slow path belongs to nobody. */
static void skip_own_time(Tracer *t)
{
  uint64_t now = clock_ticks(t->clock);
  t->file.header->agent_ticks += now - t->last_ticks;
  t->last_ticks = t->row_ticks = now;
}

/* ---- Shadow stacks --------------------------------------------------------- */

static uint64_t stack_home(const Tracer *t, const lua_State *L)
{
  return calltree_mix((uint64_t)(uintptr_t)L >> 4) & t->stack_mask;
}

static ShadowStack **stack_place(Tracer *t, const lua_State *L)
{
  uint64_t at = stack_home(t, L);
  while (t->stacks[at] && t->stacks[at]->L != L) at = (at + 1) & t->stack_mask;
  return t->stacks + at;
}

static void free_stack(ShadowStack *stack)
{
  free(stack->bottom);
  free(stack);
}

/* Into a table of this size, without the stacks that were last used before 'cutoff'. */
static bool rebuild_stacks(Tracer *t, uint64_t size, uint64_t cutoff)
{
  ShadowStack **old = t->stacks, **stacks = calloc(size, sizeof(ShadowStack *));
  uint64_t old_size = old ? t->stack_mask + 1 : 0;
  if (!stacks) return false;
  t->stacks = stacks;
  t->stack_mask = size - 1;
  t->stack_count = 0;
  for (uint64_t i = 0; i < old_size; i++) {
    if (!old[i]) continue;
    if (old[i]->used < cutoff && old[i] != t->stack && old[i]->L != t->L) {
      free_stack(old[i]);
      t->file.header->evicted_threads++;
    } else {
      *stack_place(t, old[i]->L) = old[i];
      t->stack_count++;
    }
  }
  free((void *)old);
  return true;
}

static bool make_room_for_stack(Tracer *t)
{
  if (2 * t->stack_count < t->stack_mask) return true;
  uint64_t size = t->stack_mask + 1;
  if (t->stack_count >= TRACER_MOST_STACKS) return rebuild_stacks(t, size, t->switches - TRACER_MOST_STACKS / 2);
  return rebuild_stacks(t, 2 * size, 0) || t->stack_count + 1 < t->stack_mask;
}

static ShadowStack *new_stack(Tracer *t, lua_State *L)
{
  ShadowStack *stack = calloc(1, sizeof *stack);
  if (stack) stack->bottom = stack->top = calloc(FIRST_FRAMES, sizeof(Frame));
  if (!stack || !stack->bottom || !make_room_for_stack(t)) {
    if (stack) free_stack(stack);
    return NULL;
  }
  stack->L = L;
  stack->end = stack->bottom + FIRST_FRAMES;
  *stack_place(t, L) = stack;
  t->stack_count++;
  return stack;
}

/* A coroutine whose body has returned keeps no stack: a million of them cost no memory. */
static void drop_stack(Tracer *t, ShadowStack *stack)
{
  uint64_t hole = (uint64_t)(stack_place(t, stack->L) - t->stacks), at = hole;
  for (;;) { /* close the gap, so that look-ups need no marks for what is gone */
    at = (at + 1) & t->stack_mask;
    if (!t->stacks[at]) break;
    uint64_t home = stack_home(t, t->stacks[at]->L);
    if (((at - home) & t->stack_mask) >= ((at - hole) & t->stack_mask)) {
      t->stacks[hole] = t->stacks[at];
      hole = at;
    }
  }
  t->stacks[hole] = NULL;
  t->stack_count--;
  free_stack(stack);
}

/* What runs first in a coroutine hangs below the row that resumed it. */
static void anchor(Tracer *t)
{
  Frame *bottom = t->stack->bottom;
  if (t->stack->L == t->L) return;
  bottom->node = t->resumer_row;
  bottom->line = t->resumer_line;
  t->line = bottom->line;
  enter_row(t, bottom->node);
}

/* Recording cannot go on: the target does.  Rare enough to need no way back. */
SLOW void give_up(Tracer *t, const char *note)
{
  heatfile_set_note(&t->file, note);
  LUA_NAME(tracer_end)(t);
}

static bool switch_stack(Tracer *t, lua_State *L)
{
  ShadowStack *left = t->stack;
  t->top->line = t->line;
  t->resumer_row = t->row;
  t->resumer_line = t->line;
  left->top = t->top;
  t->switches++;
  t->stack = *stack_place(t, L);
  if (RARE(!t->stack)) t->stack = new_stack(t, L);
  if (RARE(!t->stack)) {
    t->stack = left;
    give_up(t, "out of memory for another coroutine; recording ended, the program went on");
    return false;
  }
  t->stack->used = t->switches;
  t->running = L;
  t->top = t->stack->top;
  t->line = t->top->line;
  if (t->top == t->stack->bottom) anchor(t);
  else enter_row(t, t->top->node);
  if (left->top == left->bottom && left->L != t->L) drop_stack(t, left);
  return true;
}

SLOW bool grow_frames(Tracer *t)
{
  ShadowStack *stack = t->stack;
  size_t used = (size_t)(t->top - stack->bottom), size = (size_t)(stack->end - stack->bottom);
  Frame *frames = realloc(stack->bottom, 2 * size * sizeof(Frame));
  if (!frames) return false;
  stack->bottom = frames;
  stack->end = frames + 2 * size;
  t->top = frames + used;
  return true;
}

/* After fork the child counts from zero, in a file of its own. */
void LUA_NAME(tracer_forked)(Tracer *t)
{
  if (t->closed || !t->file.header) return;
  if (!heatfile_fork(&t->file)) {
    t->closed = true;
    t->running = NULL;
    return;
  }
  t->file.header->start_cpu_ns = t->gap_cpu_ns = clock_thread_cpu_ns();
  t->gap_ticks = t->last_ticks = t->row_ticks = clock_ticks(t->clock);
  t->file.header->current_row = t->row ? t->row->row : 0;
}

static inline void pop(Tracer *t)
{
  Frame *below = --t->top;
  t->line = below->line;
  enter_row(t, below->node);
}

/* ---- Calls ----------------------------------------------------------------- */

/* Without a known layout: the closure (a copy of it is a new key for the same function). */
SLOW const void *ask_running(lua_State *L, lua_Debug *ar)
{
  lua_getinfo(L, "f", ar);
  const void *key = lua_topointer(L, -1);
  lua_pop(L, 1);
  return key;
}

static inline const void *running_key(const Tracer *t, lua_State *L, lua_Debug *ar)
{
  return LIKELY(t->layout_is_known) ? layout_running(L, ar) : ask_running(L, ar);
}

static Function *function_of(Tracer *t, lua_State *L, lua_Debug *ar, const void *key)
{
  KeyEntry *entry = calltree_find_key(&t->tree, key);
  if (LIKELY(entry && !entry->function->transient && layout_guard(key, entry->function->native) == entry->guard))
    return entry->function;
  if (entry && LUA_NAME(tracer_same_function)(t, L, ar, entry)) return entry->function;
  return LUA_NAME(tracer_function)(t, L, ar, key);
}

static Edge *find_edge(const CallTree *tree, const Node *parent, const uint64_t *slot, const void *key)
{
  uint64_t at = calltree_edge_hash(parent, slot, key) & tree->edge_mask;
  for (Edge *e; (e = tree->edges + at)->child; at = (at + 1) & tree->edge_mask)
    if (e->key == key && e->slot == slot && e->parent == parent) return e;
  return NULL;
}

/* A function whose text came from no file is verified at each call, so its edge is not kept. */
static void keep_edge(Node *parent, const Edge *edge)
{
  if (edge->child->function->transient) return;
  parent->last_key = edge->key;
  parent->last_slot = edge->slot;
  parent->last_guard = edge->guard;
  parent->last_child = edge->child;
}

static Node *new_child(Tracer *t, lua_State *L, lua_Debug *ar, const void *key)
{
  Function *f = function_of(t, L, ar, key);
  Edge edge = {t->row, t->line, key, t->layout_is_known ? layout_guard(key, f->native) : 0, NULL};
  edge.child = calltree_enter(&t->tree, &edge, f);
  keep_edge(t->row, &edge);
  skip_own_time(t);
  if (RARE(t->file.full)) give_up(t, no_space);
  return edge.child;
}

/* The row was not taken last: look it up, or make it. */
static __attribute__((noinline)) Node *find_child(Tracer *t, lua_State *L, lua_Debug *ar, const void *key)
{
  Edge *edge = find_edge(&t->tree, t->row, t->line, key);
  if (!edge) return new_child(t, L, ar, key);
  Node *child = edge->child;
  bool same = child->function->transient ? function_of(t, L, ar, key) == child->function
                                         : layout_guard(key, child->native) == edge->guard;
  if (!same) return new_child(t, L, ar, key);
  keep_edge(t->row, edge);
  return child;
}

static inline Node *child_of(Tracer *t, lua_State *L, lua_Debug *ar, const void *key)
{
  Node *row = t->row;
  if (LIKELY(row->last_key == key && row->last_slot == t->line
             && layout_guard(key, row->last_child->native) == row->last_guard))
    return row->last_child;
  return find_child(t, L, ar, key);
}

static inline void push(Tracer *t, lua_State *L, lua_Debug *ar, uintptr_t id)
{
  const void *key = running_key(t, L, ar);
  Frame *frame = t->top;
  frame->line = t->line;
  Node *node = child_of(t, L, ar, key);
  if (RARE(frame + 2 >= t->stack->end)) {
    if (!grow_frames(t)) {
      give_up(t, "out of memory for a deeper stack; recording ended, the program went on");
      return;
    }
    frame = t->top;
  }
  frame++;
  frame->id = id;
  frame->node = node;
  t->top = frame;
  t->line = node->slots;
  (*node->calls)++;
  enter_row(t, node);
}

/* ---- When the running frame is not the one on top -------------------------
**
** An error unwound some; LuaJIT's C functions send no return; a tail call of
** 5.1 replaced it; or it was open before recording began. */

static bool unwind_to(Tracer *t, uintptr_t id)
{
  Frame *bottom = t->stack->bottom, *frame = t->top;
  t->top->line = t->line;
#if LAYOUT_FRAMES_ARE_ORDERED
  while (frame > bottom && frame->id > id) frame--;
#else
  while (frame > bottom && frame->id != id) frame--;
#endif
  while (t->top > frame) pop(t);
  return frame > bottom && frame->id == id;
}

static bool is_open(const Tracer *t, uintptr_t id)
{
  for (const Frame *frame = t->top; frame > t->stack->bottom; frame--)
    if (frame->id == id) return true;
  return false;
}

#if LUA_IS_51
static bool top_runs(Tracer *t, lua_State *L, lua_Debug *ar)
{
  Function *f = t->top->node->function;
  const void *key = running_key(t, L, ar);
  KeyEntry *entry = calltree_find_key(&t->tree, key);
  return f && entry && entry->function == f;
}
#endif

static void adopt(Tracer *t, lua_State *L, lua_Debug *ar, uintptr_t id)
{
  t->file.header->resyncs++;
  push(t, L, ar, id);
}

/* A line event of a frame that is not on top. */
static __attribute__((noinline)) void find_frame(Tracer *t, lua_State *L, lua_Debug *ar, uintptr_t id)
{
#if LUA_IS_JIT
  if (unwind_to(t, id)) return;
  /* A vararg function moves its frame up between its call event and its first line. */
  if (t->top > t->stack->bottom && t->line == t->row->slots && top_runs(t, L, ar)) {
    t->top->id = id;
    return;
  }
#elif LUA_ABI == 501
  if (unwind_to(t, id)) {
    if (top_runs(t, L, ar)) return;
    pop(t); /* a tail call: another function took the frame */
  }
#else
  if (is_open(t, id)) {
    unwind_to(t, id);
    return;
  }
  unwind_to(t, 0);
  anchor(t);
#endif
  adopt(t, L, ar, id);
}

/* ---- Events ----------------------------------------------------------------
**
** The hook itself is a leaf: a line in the running frame is counted in place,
** and everything else is one jump away. */

static inline uint64_t *slot_of_line(const Node *node, const lua_Debug *ar)
{
  uint32_t k = (uint32_t)ar->currentline - node->line_before;
  if (RARE(k >= node->slot_count)) k = 0; /* stripped, or a line number of someone else's making */
  return node->slots + (size_t)k * LINE_CELLS;
}

/* The coroutine of this event, if it is not the running one.  NULL: the event is none of ours. */
SLOW Tracer *follow_switch(Tracer *t, lua_State *L, uint64_t now)
{
  ShadowStack *known = t->running ? *stack_place(t, L) : NULL;
  if (!known && (!t->running || lua_topointer(L, LUA_REGISTRYINDEX) != t->registry)) t = find_tracer(L);
  if (!t || !t->running) return NULL;
  charge_line(t, now);
  charge_row(t, now);
  return L == t->running || switch_stack(t, L) ? t : NULL;
}

static __attribute__((noinline)) void line_elsewhere(lua_State *L, lua_Debug *ar)
{
  Tracer *t = tracer;
  uintptr_t id = layout_frame(ar);
  uint64_t now = clock_ticks(t->clock);
  if (L == t->running) {
    charge_line(t, now);
    if (t->top->id != id) charge_row(t, now);
  } else if (!(t = follow_switch(t, L, now))) {
    return;
  }
  if (t->top->id != id) find_frame(t, L, ar, id);
  uint64_t *slot = slot_of_line(t->row, ar);
  if (!LUA_IS_JIT || slot != t->line) slot[SLOT_HITS]++;
  if (LUA_IS_JIT) t->returned = false;
  t->line = slot;
}

static inline void returned(Tracer *t, uintptr_t id)
{
  if (RARE(t->top->id != id) && !(is_open(t, id) && unwind_to(t, id))) return;
  if (LIKELY(t->top > t->stack->bottom)) pop(t);
  if (LUA_IS_JIT) t->returned = true;
}

static __attribute__((noinline)) void unwind_before_call(Tracer *t, uintptr_t id)
{
#if LAYOUT_FRAMES_ARE_ORDERED
  /* A tail call, C functions without a return, or the stack of a coroutine that is gone. */
  t->top->line = t->line;
  while (t->top > t->stack->bottom && t->top->id >= id) pop(t);
#else
  unwind_to(t, id);
#endif
  if (t->top == t->stack->bottom) anchor(t);
}

static inline void called(Tracer *t, lua_State *L, lua_Debug *ar, uintptr_t id)
{
#if LAYOUT_FRAMES_ARE_ORDERED
  if (RARE(t->top->id >= id)) unwind_before_call(t, id);
#else
  if (RARE(ar->event == LUA_HOOKTAILCALL)) {
    if (is_open(t, id)) {
      unwind_to(t, id);
      pop(t);
    }
  } else if (LIKELY(t->layout_is_known)) {
    uintptr_t caller = (uintptr_t)layout_pointer(ar->i_ci, LAYOUT_CI_PREVIOUS);
    if (RARE(t->top->id != caller)) unwind_before_call(t, caller);
  }
#endif
  push(t, L, ar, id);
}

static inline __attribute__((always_inline)) void call_or_return(lua_State *L, lua_Debug *ar, ClockKind clock)
{
  Tracer *t = tracer;
  uint64_t now = clock_ticks(clock);
  if (LIKELY(L == t->running)) {
    charge_line(t, now);
    charge_row(t, now);
  } else if (!(t = follow_switch(t, L, now))) {
    return;
  }
  if (ar->event == LUA_HOOKRET) returned(t, layout_frame(ar));
  else called(t, L, ar, layout_frame(ar));
}

static __attribute__((noinline)) void call_or_return_with_tsc(lua_State *L, lua_Debug *ar)
{
  call_or_return(L, ar, CLOCK_KIND_TSC);
}

static __attribute__((noinline)) void call_or_return_with_monotonic(lua_State *L, lua_Debug *ar)
{
  call_or_return(L, ar, CLOCK_KIND_MONOTONIC);
}

static __attribute__((noinline)) void line_after_gap(Tracer *t, uint64_t *slot, uint64_t now)
{
  charge_line(t, now);
  slot[SLOT_HITS]++;
  t->line = slot;
  if (LUA_IS_JIT) t->returned = false;
}

/* LuaJIT names the line again after a return into the middle of it: no hit. */
static inline void line_in_top_frame(Tracer *t, lua_Debug *ar, ClockKind clock)
{
  uint64_t *slot = slot_of_line(t->row, ar);
  if (slot == t->line) {
    slot[SLOT_HITS] += LUA_IS_JIT ? !t->returned : 1;
    if (LUA_IS_JIT) t->returned = false;
    return;
  }
  uint64_t now = clock_ticks(clock), ticks = now - t->last_ticks;
  if (RARE(ticks > GAP_TICKS)) {
    line_after_gap(t, slot, now);
    return;
  }
  t->last_ticks = now;
  t->line[SLOT_SELF] += ticks;
  slot[SLOT_HITS]++;
  t->line = slot;
  if (LUA_IS_JIT) t->returned = false;
}

static inline __attribute__((always_inline)) void trace(lua_State *L, lua_Debug *ar, ClockKind clock)
{
  if (LIKELY(ar->event == LUA_HOOKLINE)) {
    Tracer *t = tracer;
    if (LIKELY(L == t->running && t->top->id == layout_frame(ar))) line_in_top_frame(t, ar, clock);
    else line_elsewhere(L, ar);
    return;
  }
#if LUA_ABI == 501
  if (RARE(ar->event == LUA_HOOKTAILRET)) return; /* the frame was replaced, there is nothing to pop */
#endif
  if (clock == CLOCK_KIND_TSC) call_or_return_with_tsc(L, ar);
  else call_or_return_with_monotonic(L, ar);
}

static void trace_with_tsc(lua_State *L, lua_Debug *ar)
{
  trace(L, ar, CLOCK_KIND_TSC);
}
static void trace_with_monotonic(lua_State *L, lua_Debug *ar)
{
  trace(L, ar, CLOCK_KIND_MONOTONIC);
}

/* ---- Hits alone ------------------------------------------------------------
**
** Only line events, no clock, no tree: the price of an empty line hook.  The
** common event is in the function and coroutine of the one before. */

#if LUA_IS_JIT
/* A return brings the calling line again.  It is the first event at its depth
** after deeper ones, and the line that was at work there: no hit. */
static inline bool is_repeated(Tracer *t, uint64_t *slot, uintptr_t depth)
{
  bool repeated = t->last_depth > depth && t->depth_lines[depth] == slot;
  t->last_depth = depth;
  t->depth_lines[depth] = slot;
  return repeated;
}
#endif

static inline void hit(Tracer *t, const lua_Debug *ar)
{
  uint32_t k = (uint32_t)ar->currentline - t->last_line_before;
  if (RARE(k >= t->last_slot_count)) k = 0;
#if LUA_IS_JIT
  if (RARE(is_repeated(t, t->last_slots + k, layout_frame(ar)))) return;
#endif
  t->last_slots[k]++;
}

static __attribute__((noinline)) void hit_in_another_function(Tracer *t, lua_State *L, lua_Debug *ar)
{
  const void *key = running_key(t, L, ar);
  Function *f = function_of(t, L, ar, key);
  t->last_key = f->transient ? NULL : key;
  t->last_guard = f->transient ? 0 : layout_guard(key, false);
  t->last_slots = f->slots;
  t->last_line_before = f->line_before;
  t->last_slot_count = f->slot_count;
  if (RARE(t->file.full)) give_up(t, no_space);
  else hit(t, ar);
}

static __attribute__((noinline)) void hit_elsewhere(lua_State *L, lua_Debug *ar)
{
  Tracer *t = tracer;
  bool alone = t == LUA_NAME(tracer_first)() && !t->next; /* then every hooked state is this one */
  if (!t->running || (!alone && lua_topointer(L, LUA_REGISTRYINDEX) != t->registry)) t = find_tracer(L);
  if (!t || !t->running) return;
  t->running = L;
  hit_in_another_function(t, L, ar);
}

static void count_hits(lua_State *L, lua_Debug *ar)
{
  Tracer *t = tracer;
  if (RARE(L != t->running)) {
    hit_elsewhere(L, ar);
    return;
  }
  const void *key = layout_running(L, ar);
  if (LIKELY(key == t->last_key && layout_guard(key, false) == t->last_guard)) hit(t, ar);
  else hit_in_another_function(t, L, ar);
}

static void count_hits_asking(lua_State *L, lua_Debug *ar)
{
  Tracer *t = tracer;
  if (L != t->running) hit_elsewhere(L, ar);
  else hit_in_another_function(t, L, ar);
}

/* ---- Life ------------------------------------------------------------------ */

static bool is_coverage(const TracerSettings *settings)
{
  return strcmp(settings->mode, "coverage") == 0;
}

static const char *runtime_name(void)
{
  return LUA_IS_JIT       ? "LuaJIT"
         : LUA_ABI == 501 ? "Lua 5.1"
         : LUA_ABI == 502 ? "Lua 5.2"
         : LUA_ABI == 503 ? "Lua 5.3"
         : LUA_ABI == 504 ? "Lua 5.4"
                          : "Lua 5.5";
}

static const char *make_tables(Tracer *t, lua_State *L, bool coverage)
{
  if (!calltree_open(&t->tree, &t->file) || !rebuild_stacks(t, FIRST_STACKS, 0)) return "out of memory";
  t->stack = new_stack(t, L);
  if (coverage && LUA_IS_JIT) t->depth_lines = calloc(TRACER_DEPTHS, sizeof(uint64_t *));
  if (!t->stack || (coverage && LUA_IS_JIT && !t->depth_lines)) return "out of memory";
  *t->stack->bottom = (Frame){.node = t->tree.root, .line = t->tree.no_line};
  return NULL;
}

const char *LUA_NAME(tracer_open)(Tracer *t, lua_State *L, const TracerSettings *settings)
{
  bool coverage = is_coverage(settings);
  memset(t, 0, sizeof *t);
  HeatSettings heat = {settings->path, settings->mode, runtime_name(), coverage ? 1 : LINE_CELLS};
  if (!heatfile_open(&t->file, &heat)) return "the heat file cannot be made";
  t->L = L;
  t->registry = lua_topointer(L, LUA_REGISTRYINDEX);
  t->clock = clock_tsc_is_invariant() ? CLOCK_KIND_TSC : CLOCK_KIND_MONOTONIC;
  t->mask = coverage ? LUA_MASKLINE : TRACE_MASK;
  const char *problem = make_tables(t, L, coverage);
  if (problem) {
    heatfile_close(&t->file);
    return problem;
  }
  heatfile_stamp_clock(&t->file, t->clock);
  return NULL;
}

static lua_Hook choose_hook(const Tracer *t)
{
  if (!(t->mask & LUA_MASKCALL)) return t->layout_is_known ? count_hits : count_hits_asking;
  return t->clock == CLOCK_KIND_TSC ? trace_with_tsc : trace_with_monotonic;
}

void LUA_NAME(tracer_begin)(Tracer *t, lua_State *L)
{
  HeatHeader *h = t->file.header;
  tracer = t;
  h->start_wall_ns = clock_wall_ns();
  h->start_monotonic_ns = clock_monotonic_ns();
  h->start_cpu_ns = t->gap_cpu_ns = clock_thread_cpu_ns();
  t->stack = *stack_place(t, L);
  if (!t->stack) t->stack = new_stack(t, L);
  t->running = L;
  t->top = t->stack->bottom;
  t->resumer_row = t->row = t->tree.root;
  t->resumer_line = t->line = t->top->line = t->tree.no_line;
  t->top->node = t->tree.root;
  t->gap_ticks = t->last_ticks = t->row_ticks = clock_ticks(t->clock);
  heatfile_set_state(&t->file, HEAT_RECORDING);
  lua_sethook(L, choose_hook(t), t->mask, 0);
}

/* The chunk that armed us is still running: the next main chunk is the script. */
static void await_script(lua_State *L, lua_Debug *ar)
{
  Tracer *t = find_tracer(L);
  if (!t) return;
  lua_getinfo(L, "S", ar);
  if (ar->what[0] != 'm') return;
  LUA_NAME(tracer_begin)(t, L);
  if (t->mask & LUA_MASKCALL) choose_hook(t)(L, ar);
}

void LUA_NAME(tracer_await_script)(Tracer *t)
{
  heatfile_set_state(&t->file, HEAT_ARMED);
  lua_sethook(t->L, await_script, LUA_MASKCALL, 0);
}

void LUA_NAME(tracer_end)(Tracer *t)
{
  HeatHeader *h = t->file.header;
  if (!h || t->closed) return;
  if (t->running && t->mask & LUA_MASKCALL) {
    uint64_t now = clock_ticks(t->clock);
    charge_line(t, now);
    charge_row(t, now);
  }
  if (t->running) {
    h->now_cpu_ns = clock_thread_cpu_ns();
    h->stop_monotonic_ns = clock_monotonic_ns();
    heatfile_stamp_clock(&t->file, t->clock);
  }
  t->running = NULL;
  t->closed = true;
  heatfile_set_state(&t->file, HEAT_STOPPED);
}

void LUA_NAME(tracer_close)(Tracer *t)
{
  LUA_NAME(tracer_end)(t);
  if (tracer == t) tracer = &nobody;
  for (uint64_t i = 0; i <= t->stack_mask; i++)
    if (t->stacks[i]) free_stack(t->stacks[i]);
  free((void *)t->stacks);
  free(t->sources);
  free((void *)t->depth_lines);
  t->stacks = NULL;
  t->sources = NULL;
  t->depth_lines = NULL;
  calltree_close(&t->tree);
  heatfile_close(&t->file);
}
