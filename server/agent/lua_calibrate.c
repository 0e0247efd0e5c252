/* What is true of this interpreter, found out in a state of our own.
**
** A scratch state has the same layout and runs at the same speed as the
** target's, and leaves the target's heap, collector and counts alone. */
#define _GNU_SOURCE
#include "lua_layout.h"
#include "lua_tracer.h"

#include <string.h>

/* ---- Does the layout hold? ------------------------------------------------- */

#define CHECKED_LINE 7 /* where the checked function stands */
#define CHECKED_LAST_LINE 9
static const char checked_text[] = "\n\n\n\n\n\nlocal function f()\nreturn 1\nend\nlocal x = f()\nreturn x\n";

typedef struct Check {
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

static bool layout_holds_here(lua_State *L, lua_Debug *ar)
{
  const void *closure;
  lua_getinfo(L, "Sf", ar);
  const void *told = lua_topointer(L, -1);
  lua_pop(L, 1);
  if (!find_closure(L, ar, &closure) || closure != told) return false;
  if (ar->linedefined != CHECKED_LINE) return true; /* the main chunk */
  int second = LUA_IS_JIT ? CHECKED_LAST_LINE - CHECKED_LINE : CHECKED_LAST_LINE;
  return lines_are_where_we_look(closure, CHECKED_LINE, second) && caller_is_where_we_look(L, ar);
}

static void check_call(lua_State *L, lua_Debug *ar)
{
  check->calls++;
  check->holds = check->holds && layout_holds_here(L, ar);
}

static bool layout_holds(lua_State *L)
{
  Check found = {0, true};
  if (luaL_loadstring(L, checked_text) != LUA_OK) return false;
  check = &found;
  lua_sethook(L, check_call, LUA_MASKCALL, 0);
  int status = lua_pcall(L, 0, 0, 0);
  lua_sethook(L, NULL, 0, 0);
  check = NULL;
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

static void measure_events(Tracer *scratch, lua_State *L, HeatHeader *h)
{
#if LUA_IS_JIT
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF); /* of this state alone */
#endif
  uint64_t lines = excess(fastest(scratch, L, lines_text, true), fastest(scratch, L, lines_text, false));
  uint64_t calls = excess(fastest(scratch, L, calls_text, true), fastest(scratch, L, calls_text, false));
  uint64_t line_x16 = lines * 16 / (ROUNDS * LINES_A_ROUND);
  uint64_t call_x16 = calls * 16 / ROUNDS;
  h->line_event_ticks_x16 = line_x16;
  h->call_event_ticks_x16 = excess(call_x16, line_x16 * LINES_A_CALL);
}

void LUA_NAME(tracer_calibrate)(Tracer *t)
{
  Tracer scratch;
  lua_State *L = luaL_newstate();
  if (!L) return;
  t->layout_is_known = layout_holds(L);
  if (t->mask & LUA_MASKCALL && LUA_NAME(tracer_open)(&scratch, L, &(TracerSettings){NULL, "trace"}) == NULL) {
    Tracer *before = LUA_NAME(tracer_make_current)(NULL);
    scratch.layout_is_known = t->layout_is_known;
    scratch.ns_per_tick = 1;
    measure_events(&scratch, L, t->file.header);
    LUA_NAME(tracer_close)(&scratch);
    LUA_NAME(tracer_make_current)(before);
  }
  lua_close(L);
  while (clock_monotonic_ns() - t->file.header->first_monotonic_ns
         < CLOCK_LEAST_NS); /* long enough that two readings of both clocks give a rate */
  heatfile_stamp_clock(&t->file, t->clock);
  HeatHeader *h = t->file.header;
  double ticks = (double)(h->now_ticks - h->first_ticks);
  t->ns_per_tick = ticks > 0 ? (double)(h->now_monotonic_ns - h->first_monotonic_ns) / ticks : 1;
}
