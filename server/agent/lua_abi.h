/* The C API of every Lua, declared by us.
**
** One shared library serves Lua 5.1 to 5.5 and LuaJIT 2.1, so no installed
** header may be used: a source that talks to Lua is compiled once for each
** ABI, with LUA_ABI set to 501 … 505, or 210 for LuaJIT, and sees here the
** types and functions of that one.  All functions are weak: they bind to the
** interpreter that loads us, and 'lua_abi_of_process' tells which it is.
** tests/test_lua_abi.py compares these declarations with the real headers. */
#ifndef LUA_ABI_H
#define LUA_ABI_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#ifndef LUA_ABI
#error "compile with -DLUA_ABI=501, 502, 503, 504, 505 or 210 (LuaJIT)"
#endif

#define LUA_IS_JIT (LUA_ABI == 210)
#define LUA_IS_51 (LUA_ABI == 501 || LUA_IS_JIT) /* the language and API of 5.1 */

/* Names of what is compiled once for each ABI: LUA_NAME(x) is x_504 and so on. */
#define LUA_PASTE_(name, abi) name##_##abi
#define LUA_PASTE(name, abi) LUA_PASTE_(name, abi)
#define LUA_NAME(name) LUA_PASTE(name, LUA_ABI)

typedef struct lua_State lua_State;
typedef int (*lua_CFunction)(lua_State *L);
typedef double lua_Number;
#if LUA_IS_51 || LUA_ABI == 502
typedef ptrdiff_t lua_Integer;
#else
typedef long long lua_Integer;
typedef intptr_t lua_KContext;
#endif

#define LUA_ABI_IDSIZE 60

typedef struct lua_Debug {
  int event;
  const char *name;     /* n */
  const char *namewhat; /* n */
  const char *what;     /* S */
  const char *source;   /* S */
#if LUA_ABI == 504 || LUA_ABI == 505
  size_t srclen; /* S */
#endif
  int currentline; /* l */
#if LUA_IS_51
  int nups;            /* u */
  int linedefined;     /* S */
  int lastlinedefined; /* S */
  char short_src[LUA_ABI_IDSIZE];
  int i_ci; /* private: number of the CallInfo; LuaJIT: frame size and offset */
#else
  int linedefined;       /* S */
  int lastlinedefined;   /* S */
  unsigned char nups;    /* u */
  unsigned char nparams; /* u */
  char isvararg;         /* u */
#if LUA_ABI == 505
  unsigned char extraargs; /* t */
#endif
  char istailcall; /* t */
#if LUA_ABI == 504
  unsigned short ftransfer; /* r */
  unsigned short ntransfer; /* r */
#elif LUA_ABI == 505
  int ftransfer; /* r */
  int ntransfer; /* r */
#endif
  char short_src[LUA_ABI_IDSIZE];
  void *i_ci; /* private: the CallInfo */
#endif
} lua_Debug;

typedef void (*lua_Hook)(lua_State *L, lua_Debug *ar);

enum { LUA_HOOKCALL = 0, LUA_HOOKRET = 1, LUA_HOOKLINE = 2, LUA_HOOKCOUNT = 3 };
#if LUA_IS_51
enum { LUA_HOOKTAILRET = 4 };
#else
enum { LUA_HOOKTAILCALL = 4 };
#endif
enum { LUA_MASKCALL = 1, LUA_MASKRET = 2, LUA_MASKLINE = 4, LUA_MASKCOUNT = 8 };

enum { LUA_OK = 0, LUA_YIELD = 1, LUA_MULTRET = -1 };
enum {
  LUA_TNONE = -1,
  LUA_TNIL = 0,
  LUA_TBOOLEAN = 1,
  LUA_TLIGHTUSERDATA = 2,
  LUA_TNUMBER = 3,
  LUA_TSTRING = 4,
  LUA_TTABLE = 5,
  LUA_TFUNCTION = 6,
  LUA_TUSERDATA = 7,
  LUA_TTHREAD = 8
};

#if LUA_IS_51
#define LUA_REGISTRYINDEX (-10000)
#define LUA_GLOBALSINDEX (-10002)
#elif LUA_ABI == 505
#define LUA_REGISTRYINDEX (-(INT_MAX / 2 + 1000))
#else
#define LUA_REGISTRYINDEX (-1000000 - 1000)
#endif
#if LUA_IS_51
#define lua_upvalueindex(i) (LUA_GLOBALSINDEX - (i))
#else
#define lua_upvalueindex(i) (LUA_REGISTRYINDEX - (i))
#endif

#define LUA_WEAK __attribute__((weak)) extern

/* The same in all of them. */
LUA_WEAK void lua_close(lua_State *L);
LUA_WEAK lua_CFunction lua_atpanic(lua_State *L, lua_CFunction panic);
LUA_WEAK int lua_gettop(lua_State *L);
LUA_WEAK void lua_settop(lua_State *L, int index);
LUA_WEAK void lua_pushvalue(lua_State *L, int index);
LUA_WEAK int lua_checkstack(lua_State *L, int extra);
LUA_WEAK int lua_isstring(lua_State *L, int index);
LUA_WEAK int lua_iscfunction(lua_State *L, int index);
LUA_WEAK int lua_type(lua_State *L, int index);
LUA_WEAK const char *lua_typename(lua_State *L, int type);
LUA_WEAK int lua_toboolean(lua_State *L, int index);
LUA_WEAK const char *lua_tolstring(lua_State *L, int index, size_t *length);
LUA_WEAK lua_CFunction lua_tocfunction(lua_State *L, int index);
LUA_WEAK void *lua_touserdata(lua_State *L, int index);
LUA_WEAK lua_State *lua_tothread(lua_State *L, int index);
LUA_WEAK const void *lua_topointer(lua_State *L, int index);
LUA_WEAK void lua_pushnil(lua_State *L);
LUA_WEAK void lua_pushinteger(lua_State *L, lua_Integer n);
LUA_WEAK void lua_pushcclosure(lua_State *L, lua_CFunction function, int upvalues);
LUA_WEAK void lua_pushboolean(lua_State *L, int b);
LUA_WEAK void lua_pushlightuserdata(lua_State *L, void *p);
LUA_WEAK int lua_pushthread(lua_State *L);
LUA_WEAK void lua_createtable(lua_State *L, int array, int records);
LUA_WEAK int lua_setmetatable(lua_State *L, int index);
LUA_WEAK void lua_setfield(lua_State *L, int index, const char *key);
LUA_WEAK int lua_next(lua_State *L, int index);
LUA_WEAK int lua_error(lua_State *L);
LUA_WEAK void lua_concat(lua_State *L, int n);
LUA_WEAK int lua_getstack(lua_State *L, int level, lua_Debug *ar);
LUA_WEAK int lua_getinfo(lua_State *L, const char *what, lua_Debug *ar);
LUA_WEAK lua_Hook lua_gethook(lua_State *L);
LUA_WEAK int lua_gethookmask(lua_State *L);
LUA_WEAK int lua_gethookcount(lua_State *L);
LUA_WEAK int luaL_callmeta(lua_State *L, int object, const char *event);
LUA_WEAK int luaL_error(lua_State *L, const char *format, ...);
LUA_WEAK lua_State *luaL_newstate(void);
LUA_WEAK void luaL_checkstack(lua_State *L, int size, const char *message);
LUA_WEAK int luaL_loadstring(lua_State *L, const char *text);
LUA_WEAK void luaL_where(lua_State *L, int level);
LUA_WEAK const char *lua_pushfstring(lua_State *L, const char *format, ...);
LUA_WEAK const char *luaL_gsub(lua_State *L, const char *text, const char *pattern, const char *replacement);

/* Result types changed with 5.2 and 5.3; nobody here uses those results. */
LUA_WEAK int lua_sethook(lua_State *L, lua_Hook hook, int mask, int count);
#if LUA_IS_51
LUA_WEAK void lua_pushstring(lua_State *L, const char *text);
LUA_WEAK void lua_pushlstring(lua_State *L, const char *text, size_t length);
LUA_WEAK void lua_getfield(lua_State *L, int index, const char *key);
LUA_WEAK void lua_rawget(lua_State *L, int index);
LUA_WEAK void lua_rawgeti(lua_State *L, int index, int n);
LUA_WEAK void lua_rawset(lua_State *L, int index);
LUA_WEAK void lua_rawseti(lua_State *L, int index, int n);
LUA_WEAK void lua_remove(lua_State *L, int index);
LUA_WEAK void lua_insert(lua_State *L, int index);
#else
LUA_WEAK const char *lua_pushstring(lua_State *L, const char *text);
LUA_WEAK const char *lua_pushlstring(lua_State *L, const char *text, size_t length);
#if LUA_ABI == 502
LUA_WEAK void lua_getfield(lua_State *L, int index, const char *key);
LUA_WEAK void lua_rawget(lua_State *L, int index);
LUA_WEAK void lua_rawgeti(lua_State *L, int index, int n);
LUA_WEAK void lua_rawseti(lua_State *L, int index, int n);
LUA_WEAK void lua_remove(lua_State *L, int index);
LUA_WEAK void lua_insert(lua_State *L, int index);
#else
LUA_WEAK int lua_getfield(lua_State *L, int index, const char *key);
LUA_WEAK int lua_rawget(lua_State *L, int index);
LUA_WEAK int lua_rawgeti(lua_State *L, int index, lua_Integer n);
LUA_WEAK void lua_rawseti(lua_State *L, int index, lua_Integer n);
LUA_WEAK void lua_rotate(lua_State *L, int index, int n);
#define lua_insert(L, index) lua_rotate(L, (index), 1)
#define lua_remove(L, index) (lua_rotate(L, (index), -1), lua_settop(L, -2))
#endif
LUA_WEAK void lua_rawset(lua_State *L, int index);
#endif

enum { LUA_GCSTOP = 0, LUA_GCRESTART = 1, LUA_GCCOLLECT = 2, LUA_GCCOUNT = 3, LUA_GCCOUNTB = 4 };
#if LUA_ABI == 504 || LUA_ABI == 505
enum { LUA_GCGEN = LUA_ABI == 504 ? 10 : 7 };
LUA_WEAK int lua_gc(lua_State *L, int what, ...);
#else
LUA_WEAK int lua_gc(lua_State *L, int what, int data);
#endif

/* 5.1 and LuaJIT. */
#if LUA_IS_51
LUA_WEAK lua_Number lua_tonumber(lua_State *L, int index);
LUA_WEAK lua_Integer lua_tointeger(lua_State *L, int index);
LUA_WEAK int lua_pcall(lua_State *L, int arguments, int results, int handler);
LUA_WEAK void lua_call(lua_State *L, int arguments, int results);
LUA_WEAK void *lua_newuserdata(lua_State *L, size_t size);
LUA_WEAK int luaL_loadfile(lua_State *L, const char *path);
LUA_WEAK int luaL_loadbuffer(lua_State *L, const char *text, size_t length, const char *name);
LUA_WEAK void luaL_openlibs(lua_State *L);
#define lua_getglobal(L, name) lua_getfield((L), LUA_GLOBALSINDEX, (name))
#define lua_setglobal(L, name) lua_setfield((L), LUA_GLOBALSINDEX, (name))
#else
LUA_WEAK lua_Number lua_tonumberx(lua_State *L, int index, int *ok);
LUA_WEAK lua_Integer lua_tointegerx(lua_State *L, int index, int *ok);
LUA_WEAK void lua_setglobal(lua_State *L, const char *name);
LUA_WEAK int luaL_loadfilex(lua_State *L, const char *path, const char *mode);
LUA_WEAK int luaL_loadbufferx(lua_State *L, const char *text, size_t length, const char *name, const char *mode);
LUA_WEAK void luaL_traceback(lua_State *L, lua_State *L1, const char *message, int level);
LUA_WEAK const char *luaL_tolstring(lua_State *L, int index, size_t *length);
#if LUA_ABI == 502
LUA_WEAK void lua_getglobal(lua_State *L, const char *name);
LUA_WEAK int lua_pcallk(lua_State *L, int arguments, int results, int handler, int context, lua_CFunction k);
LUA_WEAK void lua_callk(lua_State *L, int arguments, int results, int context, lua_CFunction k);
#define lua_pcall(L, n, r, h) lua_pcallk((L), (n), (r), (h), 0, NULL)
#define lua_call(L, n, r) lua_callk((L), (n), (r), 0, NULL)
#else
typedef int (*lua_KFunction)(lua_State *L, int status, lua_KContext context);
LUA_WEAK int lua_getglobal(lua_State *L, const char *name);
LUA_WEAK lua_Integer luaL_len(lua_State *L, int index);
LUA_WEAK int lua_pcallk(lua_State *L, int arguments, int results, int handler, lua_KContext context, lua_KFunction k);
LUA_WEAK void lua_callk(lua_State *L, int arguments, int results, lua_KContext context, lua_KFunction k);
#define lua_pcall(L, n, r, h) lua_pcallk((L), (n), (r), (h), 0, NULL)
#define lua_call(L, n, r) lua_callk((L), (n), (r), 0, NULL)
#endif
#define lua_tonumber(L, index) lua_tonumberx((L), (index), NULL)
#define lua_tointeger(L, index) lua_tointegerx((L), (index), NULL)
#define luaL_loadfile(L, path) luaL_loadfilex((L), (path), NULL)
#define luaL_loadbuffer(L, text, length, name) luaL_loadbufferx((L), (text), (length), (name), NULL)
#if LUA_ABI == 504 || LUA_ABI == 505
LUA_WEAK void *lua_newuserdatauv(lua_State *L, size_t size, int values);
LUA_WEAK void lua_setwarnf(lua_State *L, void (*warn)(void *data, const char *message, int to_continue), void *data);
#define lua_newuserdata(L, size) lua_newuserdatauv((L), (size), 1)
#else
LUA_WEAK void *lua_newuserdata(lua_State *L, size_t size);
#endif
#if LUA_ABI == 505
LUA_WEAK void luaL_openselectedlibs(lua_State *L, int load, int preload);
#define luaL_openlibs(L) luaL_openselectedlibs((L), ~0, 0)
#else
LUA_WEAK void luaL_openlibs(lua_State *L);
#endif
#endif

#if LUA_IS_JIT
enum { LUAJIT_MODE_ENGINE = 0, LUAJIT_MODE_OFF = 0x0000, LUAJIT_MODE_ON = 0x0100, LUAJIT_MODE_FLUSH = 0x0200 };
typedef void (*luaJIT_profile_callback)(void *data, lua_State *L, int samples, int vmstate);
LUA_WEAK int luaJIT_setmode(lua_State *L, int index, int mode);
LUA_WEAK void luaL_traceback(lua_State *L, lua_State *L1, const char *message, int level);
LUA_WEAK void luaJIT_profile_start(lua_State *L, const char *mode, luaJIT_profile_callback callback, void *data);
LUA_WEAK void luaJIT_profile_stop(lua_State *L);
LUA_WEAK const char *luaJIT_profile_dumpstack(lua_State *L, const char *format, int depth, size_t *length);
#endif

#define lua_pop(L, n) lua_settop((L), -(n) - 1)
#define lua_newtable(L) lua_createtable((L), 0, 0)
#define lua_pushcfunction(L, f) lua_pushcclosure((L), (f), 0)
#define lua_tostring(L, index) lua_tolstring((L), (index), NULL)
#define lua_isnil(L, index) (lua_type((L), (index)) == LUA_TNIL)
#define lua_istable(L, index) (lua_type((L), (index)) == LUA_TTABLE)
#define lua_isnoneornil(L, index) (lua_type((L), (index)) <= 0)

#endif
