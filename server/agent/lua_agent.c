/* Arms the agent in a Lua state, and sees it off.
**
** The end comes in one of three ways, and each must leave a complete file:
** lua_close collects a sentinel of ours; os.exit skips that but runs our
** destructor; a signal kills the process, and the file holds what it holds. */
#define _GNU_SOURCE
#include "lua_abi.h"
#include "lua_tracer.h"

#include <pthread.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MOST_BYTES 4096

static const char sentinel_key[] = "lineheat.sentinel";

/* ---- The end --------------------------------------------------------------- */

static int on_collected(lua_State *L)
{
  Tracer **held = lua_touserdata(L, 1);
  if (held && *held) {
    lua_sethook((*held)->L, NULL, 0, 0);
    LUA_NAME(tracer_end)(*held);
    *held = NULL;
  }
  return 0;
}

static __attribute__((destructor)) void on_exit_of_process(void)
{
  for (Tracer *t = LUA_NAME(tracer_first)(); t; t = t->next) LUA_NAME(tracer_end)(t);
}

static void on_forked_child(void)
{
  for (Tracer *t = LUA_NAME(tracer_first)(); t; t = t->next) LUA_NAME(tracer_forked)(t);
}

static void prepare_process(void)
{
  mapping_pin_library((const void *)sentinel_key); /* lua_close unloads libraries, our destructor must stay */
  pthread_atfork(NULL, NULL, on_forked_child);
}

static void set_sentinel(lua_State *L, Tracer *t)
{
  Tracer **held = lua_newuserdata(L, sizeof(Tracer *));
  *held = t;
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, on_collected);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_setfield(L, LUA_REGISTRYINDEX, sentinel_key);
}

/* ---- Configuration --------------------------------------------------------- */

/* The value of "key=value\n" in a configuration; false: it is not there, or too long. */
static bool setting(const char *configuration, const char *key, char *value)
{
  size_t length = strlen(key);
  for (const char *line = configuration; *line;) {
    const char *end = strchr(line, '\n');
    size_t bytes = end ? (size_t)(end - line) : strlen(line);
    if (bytes > length && line[length] == '=' && strncmp(line, key, length) == 0) {
      bytes -= length + 1;
      if (bytes >= VALUE_MOST_BYTES) return false;
      memcpy(value, line + length + 1, bytes);
      value[bytes] = '\0';
      return true;
    }
    line += bytes + (end != NULL);
  }
  return false;
}

static int refuse(lua_State *L, const char *why, const char *path)
{
  char line[VALUE_MOST_BYTES + 256];
  snprintf(line, sizeof line, "%s: %s%s%s", why, path, errno ? ": " : "", errno ? strerror(errno) : "");
  lua_pushnil(L);
  lua_pushstring(L, line);
  return 2;
}

/* ---- Arming ---------------------------------------------------------------- */

int LUA_NAME(lineheat_arm)(lua_State *L);

int LUA_NAME(lineheat_arm)(lua_State *L)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  char path[VALUE_MOST_BYTES], mode[VALUE_MOST_BYTES];
  const char *configuration = lua_tostring(L, 1);
  errno = 0;
  if (!configuration || !setting(configuration, "file", path) || !setting(configuration, "mode", mode))
    return refuse(L, "the agent's configuration names no file and mode", configuration ? configuration : "");
  Tracer *t = calloc(1, sizeof *t);
  if (!t) return refuse(L, "out of memory", path);
  pthread_once(&once, prepare_process);
  const char *problem = LUA_NAME(tracer_open)(t, L, &(TracerSettings){path, mode});
  if (problem) {
    int result = refuse(L, problem, path);
    free(t);
    return result;
  }
  LUA_NAME(tracer_calibrate)(t);
  LUA_NAME(tracer_enlist)(t);
  set_sentinel(L, t);
  LUA_NAME(tracer_await_script)(t);
  lua_pushboolean(L, 1);
  return 1;
}
