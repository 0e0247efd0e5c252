/* Where each Lua keeps what a hook needs to know, read without an API call.
**
** A call event must know which function runs; lua_getinfo("f") would cost as
** much as the whole event.  So the prototype's address is read by layout:
**
**   5.2+    CallInfo ─0▶ func ─▶ closure ─24▶ Proto (or C function)
**   5.1     L ─40▶ CallInfo ─8▶ func ─▶ closure ─32▶ Proto (or C function)
**   LuaJIT  L ─32▶ base[-2] ─▶ closure ─32▶ bytecode, just behind its prototype
**
** Offsets are those of 64-bit builds (LuaJIT: GC64).  They are verified when
** the agent is armed (lua_calibrate.c) by reads that cannot fault; where they
** do not hold, the API is asked instead. */
#ifndef LUA_LAYOUT_H
#define LUA_LAYOUT_H

#include "lua_abi.h"

#include <stdbool.h>
#include <string.h>

#if LUA_IS_JIT
#define LAYOUT_STATE_BASE 32
#define LAYOUT_STATE_STACK 56
#define LAYOUT_STATE_CFRAME 80
#define LAYOUT_CFRAME_PC 24
#define LAYOUT_CFRAME_FLAGS 3u
#define LAYOUT_PROTOTYPE_BYTES 104
#define LAYOUT_PROTOTYPE_SIZE 12 /* instructions */
#define LAYOUT_PROTOTYPE_LINEINFO 80
#define LAYOUT_FFID_C 1 /* a C function; greater ones are built in, and each has its own */
#define LAYOUT_SLOT_BYTES 8
#define LAYOUT_CLOSURE_FFID 10 /* 0: a Lua function */
#define LAYOUT_CLOSURE_FUNCTION 32
#define LAYOUT_CLOSURE_C 40 /* the C function, behind the header */
#define LAYOUT_LINES (-32)  /* GCproto.firstline, numline; GCproto has 104 bytes */
#define LAYOUT_POINTER_MASK 0x7fffffffffffull
#elif LUA_ABI == 501
#define LAYOUT_STATE_CI 40
#define LAYOUT_CLOSURE_UPVALUES 40
#define LAYOUT_CI_FUNC 8
#define LAYOUT_CLOSURE_FUNCTION 32
#define LAYOUT_CLOSURE_IS_C 10
#define LAYOUT_STATE_BASE_CI 80
#define LAYOUT_CI_BYTES 40
#define LAYOUT_LINES 96 /* Proto.linedefined, lastlinedefined */
#else
#define LAYOUT_STATE_CI 32
#define LAYOUT_CI_FUNC 0
#define LAYOUT_CI_PREVIOUS 16
#define LAYOUT_CLOSURE_UPVALUES 32
#define LAYOUT_VALUE_TAG 8
#define LAYOUT_TAG_LIGHT_C 0x16
#define LAYOUT_CLOSURE_TAG 8
#define LAYOUT_TAG_LUA 0x06
#define LAYOUT_CLOSURE_FUNCTION 24
#define LAYOUT_LINES (LUA_ABI == 502 ? 104 : LUA_ABI == 503 ? 40 : 44)
#endif

static inline const void *layout_pointer(const void *at, ptrdiff_t offset)
{
  const void *p;
  memcpy(&p, (const char *)at + offset, sizeof p);
  return p;
}

static inline uint8_t layout_byte(const void *at, ptrdiff_t offset)
{
  return ((const uint8_t *)at)[offset];
}

#if LUA_IS_JIT
/* Bytecode of a Lua function; a C function's address; the number of a built-in one. */
static inline const void *layout_function_of(const void *closure)
{
  uint8_t ffid = layout_byte(closure, LAYOUT_CLOSURE_FFID);
  if (ffid == 0) return layout_pointer(closure, LAYOUT_CLOSURE_FUNCTION);
  return ffid == LAYOUT_FFID_C ? layout_pointer(closure, LAYOUT_CLOSURE_C) : (const void *)(uintptr_t)ffid;
}
#endif

/* What identifies the function that runs: its prototype, or the C function's address. */
static inline const void *layout_running(lua_State *L, const lua_Debug *ar)
{
#if LUA_IS_JIT
  const char *base = layout_pointer(L, LAYOUT_STATE_BASE);
  uint64_t tagged;
  (void)ar;
  memcpy(&tagged, base - 16, sizeof tagged);
  const void *closure = (const void *)(uintptr_t)(tagged & LAYOUT_POINTER_MASK);
  return layout_function_of(closure);
#elif LUA_ABI == 501
  (void)ar;
  const void *func = layout_pointer(layout_pointer(L, LAYOUT_STATE_CI), LAYOUT_CI_FUNC);
  return layout_pointer(layout_pointer(func, 0), LAYOUT_CLOSURE_FUNCTION);
#else
  (void)L;
  const void *func = layout_pointer(ar->i_ci, 0), *value = layout_pointer(func, 0);
  if ((layout_byte(func, LAYOUT_VALUE_TAG) & 0x3f) == LAYOUT_TAG_LIGHT_C) return value;
  return layout_pointer(value, LAYOUT_CLOSURE_FUNCTION);
#endif
}

#if LUA_IS_JIT
/* Just behind the instruction at which a line event comes. */
static inline uintptr_t layout_pc(lua_State *L)
{
  uintptr_t cframe = (uintptr_t)layout_pointer(L, LAYOUT_STATE_CFRAME) & ~(uintptr_t)LAYOUT_CFRAME_FLAGS;
  return (uintptr_t)layout_pointer((const void *)cframe, LAYOUT_CFRAME_PC);
}

static inline int32_t layout_line_of(const char *prototype, uint32_t index)
{
  int32_t lines[2];
  memcpy(lines, prototype + LAYOUT_PROTOTYPE_BYTES + LAYOUT_LINES, sizeof lines);
  const void *info = layout_pointer(prototype, LAYOUT_PROTOTYPE_LINEINFO);
  if (index == 0 || !info) return lines[0];
  if (lines[1] < 256) return lines[0] + ((const uint8_t *)info)[index - 1];
  if (lines[1] < 65536) return lines[0] + ((const uint16_t *)info)[index - 1];
  return lines[0] + (int32_t)((const uint32_t *)info)[index - 1];
}

/* LuaJIT names a line again after a call, or a metamethod, from the middle of
** it.  Then the instruction before belongs to the same line; and control came
** by no backward jump, which would lead to a LOOP or just behind what begins a
** loop; 'came_back' tells of a Lua function's return.  Opcodes differ from build to build, their order from CALL on does not. */
static inline bool layout_line_is_named_again(lua_State *L, const void *code, uint8_t call_opcode, int line,
                                              bool came_back)
{
  enum { ISNEXT = 6, FORI = 11, JFORI = 12, LOOP = 19, JLOOP = 21, JMP = 22 }; /* counted from CALL */
  const uint32_t *behind = (const uint32_t *)layout_pc(L);
  ptrdiff_t index = behind - 2 - (const uint32_t *)code;
  if (index <= 0) return false; /* the function's first instruction */
  int before = (int)(behind[-2] & 0xff) - call_opcode, now = (int)(behind[-1] & 0xff) - call_opcode;
  if (now >= LOOP && now <= JLOOP) return false;
  if (before == ISNEXT || before == FORI || before == JFORI) return false;
  if (before == JMP && !came_back) return false; /* else: a comparison's metamethod */
  return layout_line_of((const char *)code - LAYOUT_PROTOTYPE_BYTES, (uint32_t)index) == line;
}
#endif

/* The same for any frame that lua_getstack has put into ar. */
static inline const void *layout_function_at(lua_State *L, const lua_Debug *ar)
{
#if LUA_IS_JIT
  const char *frame = (const char *)layout_pointer(L, LAYOUT_STATE_STACK) + (ar->i_ci & 0xffff) * LAYOUT_SLOT_BYTES;
  uint64_t tagged;
  memcpy(&tagged, frame - LAYOUT_SLOT_BYTES, sizeof tagged);
  const void *closure = (const void *)(uintptr_t)(tagged & LAYOUT_POINTER_MASK);
  return layout_function_of(closure);
#elif LUA_ABI == 501
  const char *ci = (const char *)layout_pointer(L, LAYOUT_STATE_BASE_CI) + ar->i_ci * LAYOUT_CI_BYTES;
  const void *func = layout_pointer(ci, LAYOUT_CI_FUNC);
  return layout_pointer(layout_pointer(func, 0), LAYOUT_CLOSURE_FUNCTION);
#else
  return layout_running(L, ar);
#endif
}

/* A word that changes when the key's memory becomes another function: first
** and last line of a prototype. */
static inline uint64_t layout_guard(const void *key, bool native)
{
  uint64_t guard;
  if (native) return 0;
  memcpy(&guard, (const char *)key + LAYOUT_LINES, sizeof guard);
  return guard;
}

/* What tells one frame from another on a stack while both are alive. */
static inline uintptr_t layout_frame(const lua_Debug *ar)
{
#if LUA_IS_JIT
  return (uintptr_t)(ar->i_ci & 0xffff); /* slots from the bottom of the stack */
#else
  return (uintptr_t)ar->i_ci;
#endif
}

/* In 5.1 and LuaJIT a frame is known by its place: the deeper, the greater. */
#define LAYOUT_FRAMES_ARE_ORDERED LUA_IS_51

/* In 5.2 and 5.3 the event of a tail call comes in a frame of the callee's own,
** which then moves into its caller's. */
#define LAYOUT_TAIL_CALLS_MOVE (LUA_ABI == 502 || LUA_ABI == 503)

#endif
