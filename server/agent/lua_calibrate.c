/* What is true of this interpreter, found out in a state of our own.
**
** A scratch state has the same layout and runs at the same speed as the
** target's, and leaves the target's heap, collector and counts alone. */
#define _GNU_SOURCE
#include "lua_layout.h"
#include "lua_runtime.h"
#include "lua_tracer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Does the layout hold? ------------------------------------------------- */

#define CHECKED_LINE 7 /* where the checked function stands */
#define CHECKED_LAST_LINE 9
static const char checked_text[] = "\n\n\n\n\n\nlocal function f()\nreturn 1\nend\nlocal x = f() + 1\nreturn x\n";

#define CALLING_LINE 10

typedef struct Check {
  uint8_t call_opcode; /* LuaJIT: of the instruction before a repeated event */
  int calling_line_events;
  int calls; /* of Lua functions seen */
  bool holds;
} Check;

static _Thread_local Check *check;

static bool read_pointer(const void *from, ptrdiff_t offset, const void **to)
{
  return memory_read((const char *)from + offset, to, sizeof *to);
}

/* The closure of the running function, found by layout with reads that cannot fault. */
static bool find_closure(lua_State *L, const lua_Debug *ar, const void **closure)
{
  const void *at;
#if LUA_IS_JIT
  uint64_t tagged;
  (void)ar;
  if (!read_pointer(L, LAYOUT_STATE_BASE, &at) || !memory_read((const char *)at - 16, &tagged, sizeof tagged))
    return false;
  *closure = (const void *)(uintptr_t)(tagged & LAYOUT_POINTER_MASK);
  return true;
#elif LUA_ABI == 501
  (void)ar;
  return read_pointer(L, LAYOUT_STATE_CI, &at) && read_pointer(at, LAYOUT_CI_FUNC, &at) && read_pointer(at, 0, closure);
#else
  (void)L;
  return read_pointer(ar->i_ci, 0, &at) && read_pointer(at, 0, closure);
#endif
}

static bool lines_are_where_we_look(const void *closure, int first, int second)
{
  const void *prototype;
  int32_t lines[2];
  return read_pointer(closure, LAYOUT_CLOSURE_FUNCTION, &prototype)
         && memory_read((const char *)prototype + LAYOUT_LINES, lines, sizeof lines) && lines[0] == first
         && lines[1] == second;
}

static bool caller_is_where_we_look(lua_State *L, const lua_Debug *ar)
{
#if LUA_IS_51
  (void)L, (void)ar;
  return true;
#else
  lua_Debug caller;
  const void *previous;
  return lua_getstack(L, 1, &caller) && read_pointer(ar->i_ci, LAYOUT_CI_PREVIOUS, &previous)
         && previous == caller.i_ci;
#endif
}

/* Any frame's place, as lua_getstack numbers it. */
static bool frames_are_where_we_look(lua_State *L, const lua_Debug *ar)
{
#if LUA_IS_JIT
  const void *stack, *base;
  return read_pointer(L, LAYOUT_STATE_STACK, &stack) && read_pointer(L, LAYOUT_STATE_BASE, &base)
         && (const char *)stack + ((ar->i_ci & 0xffff) + 1) * LAYOUT_SLOT_BYTES == base;
#elif LUA_ABI == 501
  const void *first, *running;
  return read_pointer(L, LAYOUT_STATE_BASE_CI, &first) && read_pointer(L, LAYOUT_STATE_CI, &running)
         && (const char *)first + ar->i_ci * LAYOUT_CI_BYTES == running;
#else
  const void *running;
  return read_pointer(L, LAYOUT_STATE_CI, &running) && running == ar->i_ci;
#endif
}

/* LuaJIT: the instruction of this event lies in the running prototype's bytecode. */
static bool pc_is_where_we_look(lua_State *L, const lua_Debug *ar, const void *closure)
{
#if LUA_IS_JIT
  const void *cframe, *pc, *code;
  uint32_t size;
  if (!read_pointer(L, LAYOUT_STATE_CFRAME, &cframe)) return false;
  cframe = (const void *)((uintptr_t)cframe & ~(uintptr_t)LAYOUT_CFRAME_FLAGS);
  if (!read_pointer(cframe, LAYOUT_CFRAME_PC, &pc) || !read_pointer(closure, LAYOUT_CLOSURE_FUNCTION, &code))
    return false;
  const char *prototype = (const char *)code - LAYOUT_PROTOTYPE_BYTES;
  if (!memory_read(prototype + LAYOUT_PROTOTYPE_SIZE, &size, sizeof size)) return false;
  if ((const char *)pc <= (const char *)code || (const char *)pc > (const char *)code + size * sizeof(uint32_t))
    return false;
  if (ar->currentline == CALLING_LINE && check->calling_line_events++ == 1)
    check->call_opcode = *((const uint8_t *)pc - 2 * sizeof(uint32_t));
  uint32_t index = (uint32_t)((const uint32_t *)pc - (const uint32_t *)code) - 1;
  return layout_line_of(prototype, index) == ar->currentline;
#else
  (void)L, (void)ar, (void)closure;
  return true;
#endif
}

static bool layout_holds_here(lua_State *L, lua_Debug *ar)
{
  const void *closure;
  lua_getinfo(L, "Sf", ar);
  const void *told = lua_topointer(L, -1);
  lua_pop(L, 1);
  if (!find_closure(L, ar, &closure) || closure != told || !frames_are_where_we_look(L, ar)) return false;
  if (ar->event == LUA_HOOKLINE) return pc_is_where_we_look(L, ar, closure);
  if (ar->linedefined != CHECKED_LINE) return true; /* the main chunk */
  int second = LUA_IS_JIT ? CHECKED_LAST_LINE - CHECKED_LINE : CHECKED_LAST_LINE;
  return lines_are_where_we_look(closure, CHECKED_LINE, second) && caller_is_where_we_look(L, ar);
}

static void check_event(lua_State *L, lua_Debug *ar)
{
  if (ar->event == LUA_HOOKCALL) check->calls++;
  check->holds = check->holds && layout_holds_here(L, ar);
}

static bool layout_holds(lua_State *L, uint8_t *call_opcode)
{
  Check found = {.holds = true};
  if (luaL_loadstring(L, checked_text) != LUA_OK) return false;
  check = &found;
  lua_sethook(L, check_event, LUA_MASKCALL | LUA_MASKLINE, 0);
  int status = lua_pcall(L, 0, 0, 0);
  lua_sethook(L, NULL, 0, 0);
  check = NULL;
  *call_opcode = found.call_opcode;
  return status == LUA_OK && found.calls == 2 && found.holds && sizeof(void *) == 8;
}

/* ---- What does an event cost? ----------------------------------------------
**
** Every event on a line of its own, as in most code: events on the same line
** take a cheaper path and would spoil the figure. */

#define CLOCK_LEAST_NS 300000u
#define REPEATS 5
#define ROUNDS 300
static const char lines_text[] = "local a = 0\nfor i = 1, 300 do\na = i\na = i\na = i\na = i\nend\n";
static const char calls_text[] = "local function f(a)\nreturn a\nend\nlocal x\nfor i = 1, 300 do\nx = f(i)\nend\n";
#define LINES_A_ROUND 5
#define LINES_A_CALL 3

/* Ticks of the fastest of a few runs; 0: it did not run. */
static uint64_t fastest(Tracer *t, lua_State *L, const char *text, bool traced)
{
  uint64_t best = 0;
  for (int i = 0; i < REPEATS; i++) {
    if (luaL_loadstring(L, text) != LUA_OK) return 0;
    if (traced) LUA_NAME(tracer_begin)(t, L);
    uint64_t ticks = clock_ticks(t->clock);
    int status = lua_pcall(L, 0, 0, 0);
    ticks = clock_ticks(t->clock) - ticks;
    lua_sethook(L, NULL, 0, 0);
    if (status != LUA_OK) return 0;
    if (best == 0 || ticks < best) best = ticks;
  }
  return best;
}

static uint64_t excess(uint64_t traced, uint64_t plain)
{
  return traced > plain ? traced - plain : 0;
}

static void measure_events(LuaRuntime *r, Tracer *scratch, lua_State *L)
{
#if LUA_IS_JIT
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF); /* of this state alone */
#endif
  uint64_t lines = excess(fastest(scratch, L, lines_text, true), fastest(scratch, L, lines_text, false));
  uint64_t calls = excess(fastest(scratch, L, calls_text, true), fastest(scratch, L, calls_text, false));
  r->line_event_ticks_x16 = lines * 16 / (ROUNDS * LINES_A_ROUND);
  r->call_event_ticks_x16 = excess(calls * 16 / ROUNDS, r->line_event_ticks_x16 * LINES_A_CALL);
}

static void learn_costs(LuaRuntime *r, lua_State *L)
{
  HeatFile file;
  Tracer scratch = {0};
  LuaRuntime runtime = *r;
  runtime.L = L;
  runtime.registry = lua_topointer(L, LUA_REGISTRYINDEX);
  runtime.ns_per_tick = 1;
  if (!heatfile_open(&file, &(HeatSettings){.mode = "trace", .runtime = "", .line_columns = 3})) return;
  if (LUA_NAME(tracer_open)(&scratch, &runtime, &file)) {
    Tracer *before = LUA_NAME(tracer_make_current)(NULL);
    measure_events(r, &scratch, L);
    LUA_NAME(tracer_close)(&scratch);
    LUA_NAME(tracer_make_current)(before);
  }
  heatfile_close(&file);
}

/* ---- Which coroutine is at work? -------------------------------------------
**
** PUC Lua does not say, and a hook belongs to one coroutine.  But whoever
** resumed another is inside coroutine.resume or the function that
** coroutine.wrap made, and that holds the other: as its argument, or as its
** upvalue.  So the chain can be followed from the main coroutine down, by
** reads that cannot fault, at no cost to the program. */

#if !LUA_IS_JIT
#define THREAD_TAG 8
static const char coroutine_text[] = "return coroutine.resume, coroutine.wrap(function() end)";

static bool learn_coroutine_functions(LuaRuntime *r, lua_State *L)
{
  luaL_openlibs(L);
  if (luaL_loadstring(L, coroutine_text) != LUA_OK || lua_pcall(L, 0, 2, 0) != LUA_OK) return false;
  r->resume = lua_tocfunction(L, -2);
  r->wrapped = lua_tocfunction(L, -1);
  lua_pop(L, 2);
  return r->resume && r->wrapped;
}

typedef struct Value {
  const void *pointer;
  int32_t tag;
  int32_t padding;
} Value;

static lua_State *thread_in(const Value *value)
{
  return (value->tag & 0x3f) == THREAD_TAG ? (lua_State *)(uintptr_t)value->pointer : NULL;
}

/* The coroutine that L has resumed and that has not come back; NULL: L itself is at work, in a C function or not. */
static lua_State *resumed_by(const LuaRuntime *r, const lua_State *L, bool *in_native)
{
  const void *ci, *func;
  Value stack[2], upvalue;
  lua_CFunction c;
  *in_native = false;
  if (!read_pointer(L, LAYOUT_STATE_CI, &ci) || !read_pointer(ci, LAYOUT_CI_FUNC, &func)) return NULL;
  if (!memory_read(func, stack, sizeof stack)) return NULL;
#if LUA_ABI == 501
  uint8_t is_c;
  if (!memory_read((const char *)stack[0].pointer + LAYOUT_CLOSURE_IS_C, &is_c, sizeof is_c) || !is_c) return NULL;
#else
  if ((stack[0].tag & 0x3f) == LAYOUT_TAG_LUA) return NULL;
  if ((stack[0].tag & 0x3f) == LAYOUT_TAG_LIGHT_C) {
    memcpy(&c, &stack[0].pointer, sizeof c);
    *in_native = true;
    return c == r->resume ? thread_in(&stack[1]) : NULL;
  }
#endif
  *in_native = true;
  if (!memory_read((const char *)stack[0].pointer + LAYOUT_CLOSURE_FUNCTION, &c, sizeof c)) return NULL;
  if (c == r->resume) return thread_in(&stack[1]);
  if (c != r->wrapped) return NULL;
  if (!memory_read((const char *)stack[0].pointer + LAYOUT_CLOSURE_UPVALUES, &upvalue, sizeof upvalue)) return NULL;
  return thread_in(&upvalue);
}

int LUA_NAME(running_coroutines)(const LuaRuntime *r, lua_State **chain, bool *in_native)
{
  int count = 0;
  *in_native = false;
  for (lua_State *L = r->L; L && count < RUNNING_MOST; L = r->coroutines_are_known ? resumed_by(r, L, in_native) : NULL)
    chain[count++] = L;
  return count;
}

static bool chain_was_found;

static int look_at_chain(lua_State *L)
{
  LuaRuntime *r = lua_touserdata(L, lua_upvalueindex(1));
  lua_State *chain[RUNNING_MOST];
  bool in_native;
  int count = LUA_NAME(running_coroutines)(r, chain, &in_native);
  chain_was_found = chain_was_found && in_native;
  chain_was_found = chain_was_found && chain[count - 1] == L && count == (int)lua_tointeger(L, 1);
  return 0;
}

static const char chain_text[] = "local look = ...\n"
                                 "look(1)\n"
                                 "coroutine.wrap(function() look(2)\n"
                                 "  coroutine.resume(coroutine.create(function() look(3) end)) look(2) end)()\n"
                                 "look(1)\n";

static bool can_find_running(LuaRuntime *r, lua_State *L)
{
  LuaRuntime scratch = *r;
  if (!learn_coroutine_functions(r, L)) return false;
  scratch.L = L;
  scratch.resume = r->resume;
  scratch.wrapped = r->wrapped;
  scratch.coroutines_are_known = true;
  chain_was_found = true;
  if (luaL_loadstring(L, chain_text) != LUA_OK) return false;
  lua_pushlightuserdata(L, &scratch);
  lua_pushcclosure(L, look_at_chain, 1);
  return lua_pcall(L, 1, 0, 0) == LUA_OK && chain_was_found;
}
#endif

/* ---- What are C functions called? -------------------------------------------
**
** By the path under which the libraries hold them: the name at a call may be
** anything, and of a tail call it is the caller's. */

static const void *native_key(lua_State *L, int index)
{
#if LUA_IS_JIT
  return layout_function_of(lua_topointer(L, index));
#else
  lua_CFunction function = lua_tocfunction(L, index);
  const void *key;
  memcpy(&key, &function, sizeof key);
  return key;
#endif
}

static void name_natives_of(LuaRuntime *r, lua_State *L, const char *library)
{
  bool is_global = strcmp(library, "_G") == 0;
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING || !lua_iscfunction(L, -1) || r->name_count == NATIVE_NAMES_MOST) continue;
    NativeName *entry = r->names + r->name_count++;
    entry->key = native_key(L, -1);
    snprintf(entry->name, sizeof entry->name, "%s%s%s", is_global ? "" : library, is_global ? "" : ".",
             lua_tostring(L, -2));
  }
}

static void learn_native_names(LuaRuntime *r, lua_State *L)
{
  int top = lua_gettop(L);
  r->names = calloc(NATIVE_NAMES_MOST, sizeof *r->names);
  if (!r->names || !lua_checkstack(L, 8)) return;
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  if (lua_istable(L, -1))
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
      if (lua_type(L, -2) == LUA_TSTRING && lua_istable(L, -1)) name_natives_of(r, L, lua_tostring(L, -2));
  lua_settop(L, top);
}

/* ---- All of it -------------------------------------------------------------- */

static void learn_rate(LuaRuntime *r)
{
  uint64_t ns;
  do ns = clock_monotonic_ns() - r->first_monotonic_ns; /* long enough that two readings of both clocks give a rate */
  while (ns < CLOCK_LEAST_NS);
  uint64_t ticks = clock_ticks(r->clock) - r->first_ticks;
  r->ns_per_tick = ticks > 0 ? (double)ns / (double)ticks : 1;
}

void LUA_NAME(runtime_learn)(LuaRuntime *r, lua_State *main, bool costs)
{
  memset(r, 0, sizeof *r);
  r->L = main;
  r->registry = lua_topointer(main, LUA_REGISTRYINDEX);
  r->clock = clock_tsc_is_invariant() ? CLOCK_KIND_TSC : CLOCK_KIND_MONOTONIC;
  r->first_ticks = clock_ticks(r->clock);
  r->first_monotonic_ns = clock_monotonic_ns();
  lua_State *L = luaL_newstate();
  if (L) {
    r->layout_is_known = layout_holds(L, &r->call_opcode);
    if (costs) learn_costs(r, L);
#if !LUA_IS_JIT
    r->coroutines_are_known = r->layout_is_known && can_find_running(r, L);
#endif
    lua_close(L);
  }
  if (r->layout_is_known) learn_native_names(r, main);
  learn_rate(r);
}
