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
#define ADOPT_MOST 1000   /* innermost frames that are adopted where recording begins in mid-run */
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
    if (t->running && t->runtime->registry == registry) return tracer = t;
  lua_sethook(L, NULL, 0, 0); /* recording is over */
  return NULL;
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
  if (t->row_ticks == 0) { /* the first event: nothing was at work before */
    t->gap_ticks = t->row_ticks = now;
    return;
  }
  uint64_t cpu_ns = clock_thread_cpu_ns();
  double wall_ns = (double)(now - t->gap_ticks) * t->runtime->ns_per_tick;
  double off_ns = wall_ns - (double)(cpu_ns - t->gap_cpu_ns);
  uint64_t off = off_ns > 0 ? (uint64_t)(off_ns / t->runtime->ns_per_tick) : 0;
  if (off > ticks) off = ticks;
  t->gap_ticks = now;
  t->gap_cpu_ns = cpu_ns;
  t->header->off_cpu_ticks += off;
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
  t->header->current_row = node->row;
}

/* Our own slow path belongs to nobody. */
static void skip_own_time(Tracer *t)
{
  uint64_t now = clock_ticks(t->clock);
  t->header->agent_ticks += now - t->last_ticks;
  t->last_ticks = t->row_ticks = now;
}

/* ---- Shadow stacks --------------------------------------------------------- */

static uint64_t stack_home(const Tracer *t, const lua_State *L)
{
  return functions_mix((uint64_t)(uintptr_t)L >> 4) & t->stack_mask;
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
    if (old[i]->used < cutoff && old[i] != t->stack && (cutoff == UINT64_MAX || old[i]->L != t->runtime->L)) {
      free_stack(old[i]);
      t->header->evicted_threads += cutoff != UINT64_MAX;
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
  if (t->stack->L == t->runtime->L) return;
  bottom->node = t->resumer_row;
  bottom->line = t->resumer_line;
  t->line = bottom->line;
  enter_row(t, bottom->node);
}

/* Recording cannot go on: the target does.  Rare enough to need no way back. */
SLOW void give_up(Tracer *t, const char *note)
{
  heatfile_set_note(t->file, note);
  LUA_NAME(tracer_end)(t);
  heatfile_end(t->file, t->clock);
}

static bool switch_stack(Tracer *t, lua_State *L, ShadowStack *known)
{
  ShadowStack *left = t->stack;
  t->top->line = t->line;
  t->resumer_row = t->row;
  t->resumer_line = t->line;
  left->top = t->top;
  t->switches++;
  t->stack = known ? known : new_stack(t, L);
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
  if (left->top == left->bottom && left->L != t->runtime->L) drop_stack(t, left);
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

void LUA_NAME(tracer_forked)(Tracer *t)
{
  t->gap_cpu_ns = clock_thread_cpu_ns();
  t->gap_ticks = t->last_ticks = t->row_ticks = clock_ticks(t->clock);
  if (t->row) t->header->current_row = t->row->row;
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
  return LIKELY(t->functions.layout_is_known) ? layout_running(L, ar) : ask_running(L, ar);
}

static Function *function_of(Tracer *t, lua_State *L, lua_Debug *ar, const void *key)
{
  KeyEntry *entry = functions_find_key(&t->functions.table, key);
  if (LIKELY(entry && !entry->function->transient && layout_guard(key, entry->function->native) == entry->guard))
    return entry->function;
  return LUA_NAME(function_of)(&t->functions, L, ar, key);
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
  Edge edge = {t->row, t->line, key, LUA_NAME(guard_of)(&t->functions, key, f->native), NULL};
  if (t->functions.files != t->files_seen) {
    t->files_seen = t->functions.files;
    calltree_forget_last_edges(&t->tree);
  }
  edge.child = calltree_enter(&t->tree, &edge, f);
  keep_edge(t->row, &edge);
  skip_own_time(t);
  if (RARE(t->file->full)) give_up(t, no_space);
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

static inline void push(Tracer *t, lua_State *L, lua_Debug *ar, uintptr_t id, const void *key)
{
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
  KeyEntry *entry = functions_find_key(&t->functions.table, key);
  return f && entry && entry->function == f;
}
#endif

static void adopt(Tracer *t, lua_State *L, lua_Debug *ar, uintptr_t id)
{
  t->header->resyncs++;
  push(t, L, ar, id, running_key(t, L, ar));
}

/* A line event of a frame that is not on top. */
static __attribute__((noinline)) void find_frame(Tracer *t, lua_State *L, lua_Debug *ar, uintptr_t id)
{
#if LUA_IS_JIT
  if (t->top > t->stack->bottom + 1 && t->top[-1].id == id) { /* back from a C function, which sends no return */
    pop(t);
    return;
  }
  if (unwind_to(t, id)) return;
  /* A vararg function moves its frame up between its call event and its first line. */
  if (t->top > t->stack->bottom && t->line == t->row->slots && top_runs(t, L, ar)) {
    t->top->id = id;
    return;
  }
#elif LUA_ABI == 501
  /* A tail call: its call event came one frame higher, then the callee took its caller's frame. */
  Node *moved = t->top->id == id + 1 && top_runs(t, L, ar) ? t->row : NULL;
  if (unwind_to(t, id)) {
    if (!moved && top_runs(t, L, ar)) return;
    pop(t);
  }
  if (moved) (*moved->calls)--;
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

/* Slot 0, "no line", where bytecode was stripped or has line numbers of someone else's making. */
static inline uint64_t *slot_of_line(const Node *node, const lua_Debug *ar)
{
  uint32_t k = (uint32_t)ar->currentline - node->line_before;
  if (RARE(k >= node->slot_count)) k = 0;
  return node->slots + (size_t)k * LINE_CELLS;
}

/* The coroutine of this event, if it is not the running one.  NULL: the event is none of ours. */
SLOW Tracer *follow_switch(Tracer *t, lua_State *L, uint64_t now)
{
  ShadowStack *known = t->running ? *stack_place(t, L) : NULL;
  if (!known && (!t->running || lua_topointer(L, LUA_REGISTRYINDEX) != t->runtime->registry)) {
    t = find_tracer(L);
    if (!t) return NULL;
    known = *stack_place(t, L);
  }
  charge_line(t, now);
  charge_row(t, now);
  return L == t->running || switch_stack(t, L, known) ? t : NULL;
}

/* Not a hit: see layout_line_is_named_again. */
static inline bool is_named_again(const Tracer *t, lua_State *L, lua_Debug *ar)
{
#if LUA_IS_JIT
  if (RARE(!t->functions.layout_is_known)) return t->returned;
  return layout_line_is_named_again(L, layout_running(L, ar), t->runtime->call_opcode, ar->currentline, t->returned);
#else
  (void)t, (void)L, (void)ar;
  return false;
#endif
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
  if (slot != t->row->slots && (slot != t->line || !is_named_again(t, L, ar))) slot[SLOT_HITS]++;
  if (LUA_IS_JIT) t->returned = false;
  t->line = slot;
}

/* A return of a frame that is not on top. */
static __attribute__((noinline)) void returned_from_below(Tracer *t, uintptr_t id)
{
  if (!is_open(t, id)) return;
  unwind_to(t, id);
  pop(t);
  if (LUA_IS_JIT) t->returned = true;
}

static inline void returned(Tracer *t, uintptr_t id)
{
  if (RARE(t->top->id != id)) {
    returned_from_below(t, id);
    return;
  }
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

#if !LAYOUT_FRAMES_ARE_ORDERED
static const void *caller_of(const Tracer *t, lua_State *L, const lua_Debug *ar)
{
  lua_Debug caller;
  if (t->functions.layout_is_known) return layout_pointer(ar->i_ci, LAYOUT_CI_PREVIOUS);
  return lua_getstack(L, 1, &caller) ? caller.i_ci : NULL;
}
#endif

static inline void called(Tracer *t, lua_State *L, lua_Debug *ar, uintptr_t id)
{
#if LAYOUT_FRAMES_ARE_ORDERED
  if (RARE(t->top->id >= id)) unwind_before_call(t, id);
#else
  if (RARE(ar->event == LUA_HOOKTAILCALL)) {
    if (LAYOUT_TAIL_CALLS_MOVE) id = (uintptr_t)caller_of(t, L, ar);
    if (is_open(t, id)) {
      unwind_to(t, id);
      pop(t);
    }
  } else if (LIKELY(t->functions.layout_is_known)) {
    uintptr_t caller = (uintptr_t)layout_pointer(ar->i_ci, LAYOUT_CI_PREVIOUS);
    if (RARE(t->top->id != caller)) unwind_before_call(t, caller);
  }
#endif
  push(t, L, ar, id, running_key(t, L, ar));
}

/* In another coroutine, or after a long interval. */
static __attribute__((noinline)) void call_or_return_elsewhere(lua_State *L, lua_Debug *ar)
{
  Tracer *t = tracer;
  uint64_t now = clock_ticks(t->clock);
  if (L == t->running) {
    charge_line(t, now);
    charge_row(t, now);
  } else if (!(t = follow_switch(t, L, now))) {
    return;
  }
  if (ar->event == LUA_HOOKRET) returned(t, layout_frame(ar));
  else called(t, L, ar, layout_frame(ar));
}

/* As charge_line and charge_row; false: it takes more than adding. */
static inline bool charge_quickly(Tracer *t, lua_State *L, ClockKind clock)
{
  if (RARE(L != t->running)) return false;
  uint64_t now = clock_ticks(clock), ticks = now - t->last_ticks;
  if (RARE(ticks > GAP_TICKS)) return false;
  t->last_ticks = now;
  t->line[SLOT_SELF] += ticks;
  charge_row(t, now);
  return true;
}

static inline __attribute__((always_inline)) void call_event(lua_State *L, lua_Debug *ar, ClockKind clock)
{
  Tracer *t = tracer;
  if (LIKELY(charge_quickly(t, L, clock))) called(t, L, ar, layout_frame(ar));
  else call_or_return_elsewhere(L, ar);
}

static __attribute__((noinline)) void call_with_tsc(lua_State *L, lua_Debug *ar)
{
  call_event(L, ar, CLOCK_KIND_TSC);
}

static __attribute__((noinline)) void call_with_monotonic(lua_State *L, lua_Debug *ar)
{
  call_event(L, ar, CLOCK_KIND_MONOTONIC);
}

static inline void return_event(Tracer *t, lua_State *L, lua_Debug *ar, ClockKind clock)
{
  if (LIKELY(charge_quickly(t, L, clock))) returned(t, layout_frame(ar));
  else call_or_return_elsewhere(L, ar);
}

static __attribute__((noinline)) void line_after_gap(Tracer *t, uint64_t *slot, uint64_t now)
{
  charge_line(t, now);
  slot[SLOT_HITS]++;
  t->line = slot;
  if (LUA_IS_JIT) t->returned = false;
}

static inline void line_in_top_frame(Tracer *t, lua_State *L, lua_Debug *ar, ClockKind clock)
{
  uint64_t *slot = slot_of_line(t->row, ar);
  if (RARE(slot == t->row->slots)) { /* hits of slot 0 are calls of cut rows */
    line_elsewhere(L, ar);
    return;
  }
  if (slot == t->line) {
    slot[SLOT_HITS] += !is_named_again(t, L, ar);
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
    if (LIKELY(L == t->running && t->top->id == layout_frame(ar))) line_in_top_frame(t, L, ar, clock);
    else line_elsewhere(L, ar);
    return;
  }
  if (ar->event == LUA_HOOKRET) {
    return_event(tracer, L, ar, clock);
    return;
  }
#if LUA_ABI == 501
  if (RARE(ar->event == LUA_HOOKTAILRET)) return; /* the frame was replaced, there is nothing to pop */
#endif
  if (clock == CLOCK_KIND_TSC) call_with_tsc(L, ar);
  else call_with_monotonic(L, ar);
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
static __attribute__((noinline)) void hit_unless_named_again(Tracer *t, lua_State *L, lua_Debug *ar, uint64_t *slot)
{
  uintptr_t depth = layout_frame(ar);
  t->returned = t->last_depth > depth;
  t->last_depth = depth;
  t->line = slot;
  *slot += !is_named_again(t, L, ar);
}
#endif

static inline void hit(Tracer *t, lua_State *L, lua_Debug *ar)
{
  uint32_t k = (uint32_t)ar->currentline - t->last.line_before;
  if (RARE(k >= t->last.slot_count)) return; /* see slot_of_line */
  uint64_t *slot = t->last.slots + k;
#if LUA_IS_JIT
  if (slot == t->line || layout_frame(ar) != t->last_depth) { /* else control came from another line of this frame */
    hit_unless_named_again(t, L, ar, slot);
    return;
  }
  t->line = slot;
#endif
  (void)L;
  ++*slot;
}

static HitRun run_of(Tracer *t, lua_State *L, lua_Debug *ar, const void *key)
{
  Function *f = function_of(t, L, ar, key);
  bool kept = !f->transient;
  return (HitRun){kept ? key : NULL, kept ? layout_guard(key, false) : 0, f->slots, f->line_before, f->slot_count};
}

static inline bool is_run_of(const HitRun *run, const void *key)
{
  return run->key == key && layout_guard(key, false) == run->guard;
}

static __attribute__((noinline)) void hit_in_another_function(Tracer *t, lua_State *L, lua_Debug *ar)
{
  const void *key = running_key(t, L, ar);
  HitRun run = is_run_of(&t->other, key) ? t->other : run_of(t, L, ar, key);
  t->other = t->last;
  t->last = run;
  if (RARE(t->file->full)) give_up(t, no_space);
  else hit(t, L, ar);
}

static __attribute__((noinline)) void hit_elsewhere(lua_State *L, lua_Debug *ar)
{
  Tracer *t = tracer;
  bool alone = t == tracers && !t->next; /* then every hooked state is this one */
  if (!t->running || (!alone && lua_topointer(L, LUA_REGISTRYINDEX) != t->runtime->registry)) t = find_tracer(L);
  if (!t || !t->running) return;
  t->running = L;
  t->last_depth = 0; /* another stack */
  const void *key = running_key(t, L, ar);
  if (is_run_of(&t->last, key)) hit(t, L, ar);
  else hit_in_another_function(t, L, ar);
}

static void count_hits(lua_State *L, lua_Debug *ar)
{
  Tracer *t = tracer;
  if (RARE(L != t->running)) {
    hit_elsewhere(L, ar);
    return;
  }
  if (LIKELY(is_run_of(&t->last, layout_running(L, ar)))) hit(t, L, ar);
  else hit_in_another_function(t, L, ar);
}

static void count_hits_asking(lua_State *L, lua_Debug *ar)
{
  Tracer *t = tracer;
  if (L != t->running) hit_elsewhere(L, ar);
  else hit_in_another_function(t, L, ar);
}

/* ---- Life ------------------------------------------------------------------ */

static bool make_tables(Tracer *t)
{
  return LUA_NAME(functions_open)(&t->functions, t->file, t->runtime) && calltree_open(&t->tree, &t->functions.table)
         && rebuild_stacks(t, FIRST_STACKS, 0);
}

bool LUA_NAME(tracer_open)(Tracer *t, const LuaRuntime *runtime, HeatFile *file)
{
  Tracer *next = t->next;
  memset(t, 0, sizeof *t);
  t->next = next;
  t->file = file;
  t->header = file->header;
  t->runtime = runtime;
  t->clock = runtime->clock;
  t->mask = file->tables[HEAT_LINE].columns == 1 ? LUA_MASKLINE : TRACE_MASK;
  if (make_tables(t)) return true;
  LUA_NAME(tracer_close)(t);
  return false;
}

void LUA_NAME(tracer_close)(Tracer *t)
{
  for (uint64_t i = 0; t->stacks && i <= t->stack_mask; i++)
    if (t->stacks[i]) free_stack(t->stacks[i]);
  free((void *)t->stacks);
  if (t->tree.edges) calltree_close(&t->tree);
  LUA_NAME(functions_close)(&t->functions);
  t->running = NULL;
  t->stacks = NULL;
}

lua_Hook LUA_NAME(tracer_hook)(const Tracer *t)
{
  if (!(t->mask & LUA_MASKCALL)) return t->functions.layout_is_known ? count_hits : count_hits_asking;
  return t->clock == CLOCK_KIND_TSC ? trace_with_tsc : trace_with_monotonic;
}

/* What shadow stacks were kept is of no use: frames were opened and closed unseen. */
static bool begin_stack(Tracer *t, lua_State *L)
{
  Frame bottom = {.node = t->tree.root, .line = t->functions.table.no_line};
  t->stack = NULL;
  if (!rebuild_stacks(t, FIRST_STACKS, UINT64_MAX)) return false;
  t->stack = new_stack(t, t->runtime->L);
  if (!t->stack) return false;
  *t->stack->bottom = bottom;
  if (L != t->runtime->L) t->stack = new_stack(t, L);
  if (!t->stack) return false;
  *t->stack->bottom = bottom;
  return true;
}

void LUA_NAME(tracer_begin)(Tracer *t, lua_State *L)
{
  if (!begin_stack(t, L)) {
    give_up(t, "out of memory; recording ended, the program went on");
    return;
  }
  tracer = t;
  t->running = L;
  t->returned = false;
  t->last = t->other = (HitRun){0};
  t->top = t->stack->bottom;
  t->resumer_row = t->tree.root;
  t->resumer_line = t->line = t->top->line;
  enter_row(t, t->tree.root);
  t->gap_cpu_ns = clock_thread_cpu_ns();
  t->gap_ticks = t->last_ticks = t->row_ticks = 0; /* see charge_gap */
  lua_sethook(L, LUA_NAME(tracer_hook)(t), t->mask, 0);
}

/* Frames that are open already: they were not called now, so no call is counted.  What runs them all (the
** host's own C function) is left out. */
void LUA_NAME(tracer_adopt)(Tracer *t, lua_State *L)
{
  lua_Debug ar;
  int depth = 0;
  while (depth < ADOPT_MOST && lua_getstack(L, depth, &ar)) depth++;
  while (t->running && depth-- > 0) {
    if (!lua_getstack(L, depth, &ar)) continue;
    const void *key = t->functions.layout_is_known ? layout_function_at(L, &ar) : ask_running(L, &ar);
    if (function_of(t, L, &ar, key)->native && t->top == t->stack->bottom) continue;
    push(t, L, &ar, layout_frame(&ar), key);
    (*t->row->calls)--;
    lua_getinfo(L, "l", &ar);
    t->line = slot_of_line(t->row, &ar);
    t->header->resyncs++;
  }
  t->gap_ticks = t->last_ticks = t->row_ticks = clock_ticks(t->clock);
}

void LUA_NAME(tracer_end)(Tracer *t)
{
  if (!t->running) return;
  if (t->mask & LUA_MASKCALL && t->top > t->stack->bottom) { /* after the script's end nothing of it runs */
    uint64_t now = clock_ticks(t->clock);
    charge_line(t, now);
    charge_row(t, now);
  }
  t->running = NULL;
}
