/* The 'lua' command without its options, for a Lua that came as a library.
**
** A script must not notice: the same messages, tracebacks, signals and exit
** status as lua.c or luajit.c of that version gives.  So the calls nest as
** theirs do (the last line of a traceback is our 'run'), and what differs
** from version to version stands in the first section, nowhere else. */
#define _GNU_SOURCE
#include "lua_abi.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LUA_NAME(lineheat_arm)(lua_State *L);
int LUA_NAME(lineheat_host)(int count, char **arguments);

typedef struct Host {
  const char *name;          /* what the interpreter calls itself: arg[-1], and before messages */
  const char *configuration; /* for lineheat_arm; "" = do not arm */
  char **script;             /* path, then its arguments */
  int arguments;             /* of the script, its path not counted */
} Host;

/* ---- What differs between the versions ------------------------------------ */

#define LUA_IS_PUC51 (LUA_ABI == 501)
#define LUA_IS_53_ON (LUA_ABI >= 503) /* LuaJIT's number is below these */
#define LUA_IS_54_ON (LUA_ABI >= 504)

enum {
  MINOR_VERSION = LUA_IS_JIT ? 1 : LUA_ABI - 500,
  VERSIONED_VARIABLES = LUA_ABI >= 502,         /* LUA_INIT_5_4 goes before LUA_INIT */
  ARG_BEFORE_INIT = LUA_IS_JIT || LUA_IS_53_ON, /* LUA_INIT sees the table 'arg' */
  COLLECT_BEFORE_MESSAGE = LUA_IS_51,           /* after an error: __gc prints first, … */
  COLLECT_AFTER_MESSAGE = LUA_ABI == 502,       /* … or last */
  MAIN_ARGUMENTS = LUA_IS_51 ? 1 : 2            /* of its main function: a full stack counts each slot */
};

static int interrupt_signal_flags(void)
{
  return LUA_IS_54_ON ? 0 : SA_RESTART; /* lua.c turned from signal to sigaction */
}

static int interrupt_hook_mask(void)
{
  int mask = LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT;
  return LUA_IS_54_ON ? mask | LUA_MASKLINE : mask;
}

static void start_collector(lua_State *L)
{
  lua_gc(L, LUA_GCRESTART, -1); /* LuaJIT: -1 = no collection at once */
#if LUA_IS_54_ON
  lua_gc(L, LUA_GCGEN, 0, 0);
#endif
}

static void raise_interrupted(lua_State *L)
{
#if LUA_IS_JIT
  luaL_where(L, 0); /* a C hook adds no frame there, so luaL_error would look one too far */
  lua_pushfstring(L, "%sinterrupted!", lua_tostring(L, -1));
  lua_error(L);
#else
  luaL_error(L, "interrupted!");
#endif
}

#if LUA_IS_PUC51

/* 5.1 has no luaL_traceback: whatever stands in debug.traceback is called. */
static int handle_message(lua_State *L)
{
  if (!lua_isstring(L, 1)) return 1;
  lua_getglobal(L, "debug");
  if (!lua_istable(L, -1)) {
    lua_settop(L, 1);
    return 1;
  }
  lua_getfield(L, -1, "traceback");
  if (lua_type(L, -1) != LUA_TFUNCTION) {
    lua_settop(L, 1);
    return 1;
  }
  lua_pushvalue(L, 1);
  lua_pushinteger(L, 2);
  lua_call(L, 2, 1);
  return 1;
}

#elif LUA_IS_JIT

static int handle_message(lua_State *L)
{
  if (!lua_isstring(L, 1)) {
    if (lua_isnoneornil(L, 1) || !luaL_callmeta(L, 1, "__tostring") || !lua_isstring(L, -1)) return 1;
    lua_remove(L, 1);
  }
  luaL_traceback(L, L, lua_tostring(L, 1), 1);
  return 1;
}

#elif LUA_ABI == 502

static int handle_message(lua_State *L)
{
  const char *message = lua_tostring(L, 1);
  if (message) luaL_traceback(L, L, message, 1);
  else if (!lua_isnoneornil(L, 1) && !luaL_callmeta(L, 1, "__tostring")) lua_pushstring(L, "(no error message)");
  return 1;
}

#else

static int handle_message(lua_State *L)
{
  const char *message = lua_tostring(L, 1);
  if (!message) {
    if (luaL_callmeta(L, 1, "__tostring") && lua_type(L, -1) == LUA_TSTRING) return 1;
    message = lua_pushfstring(L, "(error object is a %s value)", lua_typename(L, lua_type(L, 1)));
  }
  luaL_traceback(L, L, message, 1);
  return 1;
}

#endif

#if LUA_IS_JIT

/* LUA_INIT may have changed 'arg', which is what counts: up to its first nil. */
static int push_arguments(lua_State *L, const Host *host)
{
  (void)host;
  lua_getglobal(L, "arg");
  int table = lua_gettop(L);
  int count = 0;
  if (lua_istable(L, table))
    for (lua_rawgeti(L, table, 1); !lua_isnil(L, -1); lua_rawgeti(L, table, count + 1)) {
      luaL_checkstack(L, 3, "too many arguments to script");
      count++;
    }
  lua_settop(L, table + count);
  lua_remove(L, table);
  return count;
}

#elif LUA_IS_53_ON

/* The same, up to its border. */
static int push_arguments(lua_State *L, const Host *host)
{
  (void)host;
  lua_getglobal(L, "arg");
  if (!lua_istable(L, -1)) luaL_error(L, "'arg' is not a table");
  int table = lua_gettop(L);
  int count = (int)luaL_len(L, table);
  luaL_checkstack(L, count + 3, "too many arguments to script");
  for (int i = 1; i <= count; i++) lua_rawgeti(L, table, i);
  lua_remove(L, table);
  return count;
}

#else

static int push_arguments(lua_State *L, const Host *host)
{
  luaL_checkstack(L, host->arguments + 3, "too many arguments to script");
  for (int i = 1; i <= host->arguments; i++) lua_pushstring(L, host->script[i]);
  return host->arguments;
}

#endif

/* ---- Messages ------------------------------------------------------------- */

static void print_message(const char *name, const char *message)
{
  fprintf(stderr, "%s: %s\n", name, message);
  fflush(stderr);
}

/* Prints and pops the error on the stack, if there is one.  nil is none: that
** is how scripts of 5.1 and 5.2 ask to leave in silence. */
static bool report(lua_State *L, const Host *host, int status)
{
  if (status == LUA_OK) return true;
  if (lua_isnil(L, -1)) return false;
  const char *message = lua_tostring(L, -1);
  print_message(host->name, message ? message : "(error object is not a string)");
  lua_pop(L, 1);
  if (COLLECT_AFTER_MESSAGE) lua_gc(L, LUA_GCCOLLECT, 0);
  return false;
}

/* ---- Ctrl-C --------------------------------------------------------------- */

static lua_State *interruptible; /* a signal handler is given no argument of ours */

static void set_interrupt_handler(void (*handler)(int))
{
  struct sigaction action = {.sa_handler = handler, .sa_flags = interrupt_signal_flags()};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
}

static void stop_script(lua_State *L, lua_Debug *ar)
{
  (void)ar;
  lua_sethook(L, NULL, 0, 0);
  raise_interrupted(L);
}

/* The signal may arrive anywhere, so its handler only asks for a hook, which
** Lua calls at its next safe point.  A second Ctrl-C ends the process. */
static void on_interrupt(int signal_number)
{
  (void)signal_number;
  set_interrupt_handler(SIG_DFL);
  lua_sethook(interruptible, stop_script, interrupt_hook_mask(), 1);
}

/* ---- Running -------------------------------------------------------------- */

static int call(lua_State *L, int arguments, int results)
{
  int base = lua_gettop(L) - arguments;
  lua_pushcfunction(L, handle_message);
  lua_insert(L, base);
  interruptible = L;
  set_interrupt_handler(on_interrupt);
  int status = lua_pcall(L, arguments, results, base);
  set_interrupt_handler(SIG_DFL);
  lua_remove(L, base);
  if (COLLECT_BEFORE_MESSAGE && status != LUA_OK) lua_gc(L, LUA_GCCOLLECT, 0);
  return status;
}

static void set_arg(lua_State *L, const Host *host)
{
  lua_createtable(L, host->arguments, 2);
  lua_pushstring(L, host->name);
  lua_rawseti(L, -2, -1);
  for (int i = 0; i <= host->arguments; i++) {
    lua_pushstring(L, host->script[i]);
    lua_rawseti(L, -2, i);
  }
  lua_setglobal(L, "arg");
}

/* The value of NAME_5_x, or else of NAME; the one that was used goes to used,
** of at least 32 bytes. */
static const char *lua_variable(const char *name, char *used)
{
  snprintf(used, 32, "%s_5_%d", name, MINOR_VERSION);
  const char *value = VERSIONED_VARIABLES ? getenv(used) : NULL;
  if (value) return value;
  snprintf(used, 32, "%s", name);
  return getenv(used);
}

static bool run_init(lua_State *L, const Host *host)
{
  char chunk_name[33] = "=";
  const char *init = lua_variable("LUA_INIT", chunk_name + 1);
  if (!init) return true;
  int status = *init == '@' ? luaL_loadfile(L, init + 1) : luaL_loadbuffer(L, init, strlen(init), chunk_name);
  if (status == LUA_OK) status = call(L, 0, 0);
  return report(L, host, status);
}

static bool arm(lua_State *L, const Host *host)
{
  if (!*host->configuration) return true;
  lua_pushcfunction(L, LUA_NAME(lineheat_arm));
  lua_pushstring(L, host->configuration);
  bool armed = lua_pcall(L, 1, 2, 0) == LUA_OK && lua_toboolean(L, -2);
  const char *why = armed ? NULL : lua_tostring(L, -1);
  if (!armed) print_message("lineheat", why ? why : "the agent could not be armed");
  lua_settop(L, MAIN_ARGUMENTS);
  return armed;
}

static bool run_script(lua_State *L, const Host *host)
{
  const char *path = host->script[0];
  int status = luaL_loadfile(L, strcmp(path, "-") == 0 ? NULL : path);
  if (status == LUA_OK) status = call(L, push_arguments(L, host), LUA_MULTRET);
  return report(L, host, status);
}

/* ---- Where modules are found ----------------------------------------------
**
** A library built for a package of another language searches /usr/local
** only.  A usual installation goes on in /usr, and so do we, unless the user
** has said where to look. */

#if defined(__aarch64__)
#define SYSTEM_LIBRARIES "/usr/lib/aarch64-linux-gnu"
#else
#define SYSTEM_LIBRARIES "/usr/lib/x86_64-linux-gnu"
#endif

#define LAST_LOCAL_PATH (LUA_IS_JIT ? "/usr/local/share/lua/5.%d/?/init.lua" : "/usr/local/lib/lua/5.%d/?/init.lua")
#define LAST_LOCAL_CPATH "/usr/local/lib/lua/5.%d/?.so"

/* In package[field]: 'more' after the template 'last', both with the version still to be filled in. */
static void widen(lua_State *L, const char *field, const char *last, const char *more)
{
  lua_getglobal(L, "package");
  const char *old = lua_pushfstring(L, last, MINOR_VERSION);
  const char *added = lua_pushfstring(L, more, MINOR_VERSION, MINOR_VERSION);
  const char *replacement = lua_pushfstring(L, "%s;%s", old, added);
  lua_getfield(L, -4, field);
  luaL_gsub(L, lua_tostring(L, -1), old, replacement);
  lua_setfield(L, -6, field);
  lua_settop(L, MAIN_ARGUMENTS);
}

/* ';;' in a variable stands for the default, which is then widened as well. */
static bool default_is_used(const char *variable)
{
  char used[32];
  const char *value = lua_variable(variable, used);
  return !value || strstr(value, ";;");
}

static void widen_search(lua_State *L)
{
  if (default_is_used("LUA_PATH"))
    widen(L, "path", LAST_LOCAL_PATH, "/usr/share/lua/5.%d/?.lua;/usr/share/lua/5.%d/?/init.lua");
  if (!default_is_used("LUA_CPATH")) return;
  if (access(SYSTEM_LIBRARIES, F_OK) == 0)
    widen(L, "cpath", LAST_LOCAL_CPATH, SYSTEM_LIBRARIES "/lua/5.%d/?.so;/usr/lib/lua/5.%d/?.so");
  else widen(L, "cpath", LAST_LOCAL_CPATH, "/usr/lib64/lua/5.%d/?.so;/usr/lib/lua/5.%d/?.so");
}

/* ---- The order of things -------------------------------------------------- */

static int run(lua_State *L)
{
  const Host *host = lua_touserdata(L, 1);
  lua_settop(L, MAIN_ARGUMENTS);
  luaL_openlibs(L);
  widen_search(L);
  if (ARG_BEFORE_INIT) set_arg(L, host);
  start_collector(L);
  bool ok = run_init(L, host) && arm(L, host);
  if (ok && !ARG_BEFORE_INIT) set_arg(L, host);
  lua_pushboolean(L, ok && run_script(L, host));
  return 1;
}

/* arguments: name, configuration, script, arguments of the script; then NULL. */
int LUA_NAME(lineheat_host)(int count, char **arguments)
{
  Host host = {arguments[0], arguments[1], arguments + 2, count - 3};
  lua_State *L = luaL_newstate();
  if (!L) {
    print_message(host.name, "cannot create state: not enough memory");
    return EXIT_FAILURE;
  }
  lua_gc(L, LUA_GCSTOP, 0); /* until the libraries are open */
  lua_pushcfunction(L, run);
  lua_pushlightuserdata(L, &host);
  bool ok = report(L, &host, lua_pcall(L, 1, 1, 0)) && lua_toboolean(L, -1);
  lua_close(L);
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
