/* What a function is: asked once, when it is called for the first time, and
** again only where memory may have been reused. */
#define _GNU_SOURCE
#include "lua_function.h"
#include "lua_layout.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_SOURCES 64u
#define TEXT_MOST_BYTES 60000u /* of a chunk that came from no file */
#define NAME_MOST_BYTES 200u
#define NEVER UINT64_MAX /* an epoch: verify at each call */

/* ---- Sources --------------------------------------------------------------
**
** "@path": a file.  "=name": something else that has a name.  Any other: the
** text itself, known by its hash. */

static uint64_t hash_bytes(const char *text, size_t length, uint64_t hash)
{
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ull; /* FNV-1a */
  return hash;
}

static size_t source_length(const lua_Debug *ar)
{
#if LUA_ABI == 504 || LUA_ABI == 505
  return ar->srclen;
#else
  return strlen(ar->source);
#endif
}

static SourceEntry *source_place(SourceEntry *sources, uint64_t mask, uint64_t hash)
{
  uint64_t at = hash & mask;
  while (sources[at].hash && sources[at].hash != hash) at = (at + 1) & mask;
  return sources + at;
}

static void grow_sources(LuaFunctions *t)
{
  uint64_t mask = t->sources ? t->source_mask * 2 + 1 : FIRST_SOURCES - 1;
  SourceEntry *sources = calloc(mask + 1, sizeof *sources);
  if (!sources) return;
  for (uint64_t i = 0; t->sources && i <= t->source_mask; i++)
    if (t->sources[i].hash) *source_place(sources, mask, t->sources[i].hash) = t->sources[i];
  free(t->sources);
  t->sources = sources;
  t->source_mask = mask;
}

/* The target may change its folder later, so a path is made absolute when it is first named. */
static uint32_t define_path(HeatFile *file, const char *path, size_t length)
{
  char absolute[PATH_MAX + 1];
  if (length >= 2 && memcmp(path, "./", 2) == 0) path += 2, length -= 2;
  if (path[0] == '/' || !getcwd(absolute, sizeof absolute)) return heatfile_string(file, path, length);
  size_t folder = strlen(absolute);
  if (folder + 1 + length > PATH_MAX) return heatfile_string(file, path, length);
  absolute[folder] = '/';
  memcpy(absolute + folder + 1, path, length);
  return heatfile_string(file, absolute, folder + 1 + length);
}

static uint32_t define_source(LuaFunctions *t, const lua_Debug *ar, uint64_t hash)
{
  HeatFile *file = t->table.file;
  const char *name = ar->short_src, *kind = "string";
  size_t text = 0;
  uint32_t name_row;
  if (ar->what[0] == 'C') {
    name = "[C]", kind = "native";
  } else if (ar->source[0] == '@') {
    kind = "file";
  } else if (ar->source[0] != '=') {
    text = source_length(ar) < TEXT_MOST_BYTES ? source_length(ar) : TEXT_MOST_BYTES;
  }
  if (ar->source[0] == '@') name_row = define_path(file, ar->source + 1, source_length(ar) - 1);
  else name_row = heatfile_string(file, name, strlen(name));
  return heatfile_row32(file, HEAT_SOURCE,
                        (uint32_t[]){name_row, heatfile_string(file, kind, strlen(kind)),
                                     heatfile_string(file, ar->source, text), (uint32_t)hash, (uint32_t)(hash >> 32)});
}

static uint64_t source_hash(const lua_Debug *ar)
{
  if (ar->what[0] == 'C') return 1;
  uint64_t hash = hash_bytes(ar->source, source_length(ar), 0xcbf29ce484222325ull);
  return hash ? hash : 2;
}

static SourceEntry source_of(LuaFunctions *t, const lua_Debug *ar)
{
  uint64_t hash = source_hash(ar);
  bool transient = ar->what[0] != 'C' && ar->source[0] != '@' && ar->source[0] != '=';
  if (2 * t->source_count >= t->source_mask) grow_sources(t);
  if (!t->sources || t->source_count + 1 >= t->source_mask) return (SourceEntry){hash, 0, transient};
  SourceEntry *entry = source_place(t->sources, t->source_mask, hash);
  if (!entry->hash) {
    *entry = (SourceEntry){hash, define_source(t, ar, hash), transient};
    t->source_count++;
  }
  return *entry;
}

/* ---- How many lines a main chunk has --------------------------------------
**
** Asking the runtime (getinfo "L") would fill the target's heap with a table
** and shift its collector, so the text is read instead where it can be had. */

#if !LUA_IS_JIT
static uint32_t lines_of_text(const char *text, size_t length)
{
  uint32_t lines = 1;
  for (const char *p = text, *end = text + length; (p = memchr(p, '\n', (size_t)(end - p))); p++) lines++;
  return lines;
}

/* Also "\r" and "\n\r" end a line for Lua: count each, which is never too few. */
static uint32_t lines_of_file(const char *path)
{
  char block[65536];
  struct stat status;
  uint32_t lines = 1;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return 0;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    return 0;
  }
  for (ssize_t n; (n = read(fd, block, sizeof block)) > 0;)
    for (ssize_t i = 0; i < n; i++) lines += block[i] == '\n' || block[i] == '\r';
  close(fd);
  return lines;
}

static int push_active_lines(lua_State *L)
{
  lua_Debug *ar = lua_touserdata(L, 1);
  uint32_t *last = lua_touserdata(L, 2);
  lua_getinfo(L, "L", ar);
  if (!lua_istable(L, -1)) return 0;
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
    if (lua_tointeger(L, -2) > (lua_Integer)*last) *last = (uint32_t)lua_tointeger(L, -2);
  return 0;
}

/* Protected, since it allocates: the target's own memory limit is not ours to hit. */
static uint32_t ask_active_lines(lua_State *L, lua_Debug *ar)
{
  uint32_t last = 0;
  int top = lua_gettop(L);
  if (!lua_checkstack(L, 8)) return 0;
  lua_pushcfunction(L, push_active_lines);
  lua_pushlightuserdata(L, ar);
  lua_pushlightuserdata(L, &last);
  lua_pcall(L, 2, 0, 0);
  lua_settop(L, top);
  return last;
}
#endif

static uint32_t last_line_of_main(lua_State *L, lua_Debug *ar)
{
#if LUA_IS_JIT
  (void)L;
  return (uint32_t)ar->lastlinedefined;
#else
  uint32_t lines = 0;
  if (ar->source[0] == '@') lines = lines_of_file(ar->source + 1);
  else if (ar->source[0] != '=') lines = lines_of_text(ar->source, source_length(ar));
  return lines ? lines : ask_active_lines(L, ar);
#endif
}

/* ---- Functions ------------------------------------------------------------ */

static const char *library_name(const LuaRuntime *r, const void *key)
{
  for (int i = 0; i < r->name_count; i++)
    if (r->names[i].key == key) return r->names[i].name;
  return NULL;
}

static void name_function(char *to, size_t size, const LuaFunctions *t, const lua_Debug *ar, const void *key)
{
  const char *known = ar->what[0] == 'C' ? library_name(t->runtime, key) : NULL;
  if (known) snprintf(to, size, "%s", known);
  else if (ar->what[0] == 'm') snprintf(to, size, "main chunk");
  else if (ar->name) snprintf(to, size, "%s", ar->name);
  else if (ar->what[0] == 'C') snprintf(to, size, "?");
  else snprintf(to, size, "function:%d", ar->linedefined);
}

/* Copies of one function (a chunk loaded twice) have the same identity. */
static uint64_t identity_of(const lua_Debug *ar, const void *key, uint64_t source)
{
  if (ar->what[0] == 'C') return functions_mix((uint64_t)(uintptr_t)key) | 1;
  uint64_t lines = (uint64_t)(uint32_t)ar->linedefined << 32 | (uint32_t)ar->lastlinedefined;
  return functions_mix(source ^ functions_mix(lines ^ (uint64_t)ar->nups << 24)) | 1;
}

static Function *define(LuaFunctions *t, lua_State *L, lua_Debug *ar, const void *key)
{
  char name[NAME_MOST_BYTES];
  lua_getinfo(L, "Snu", ar);
  bool native = ar->what[0] == 'C', main = ar->what[0] == 'm';
  uint64_t sources = t->source_count;
  SourceEntry source = source_of(t, ar);
  if (source.transient) t->epoch++; /* memory of collected chunks may serve again */
  else if (t->source_count > sources) t->files++;
  name_function(name, sizeof name, t, ar, key);
  FunctionFacts facts = {
      .name = name,
      .kind = native ? "native"
              : main ? "main"
                     : "lua",
      .source_row = source.row,
      .first_line = main || native ? 0 : (uint32_t)ar->linedefined,
      .last_line = main     ? last_line_of_main(L, ar)
                   : native ? 0
                            : (uint32_t)ar->lastlinedefined,
      .identity = identity_of(ar, key, source.hash),
      .native = native,
      .transient = source.transient || (!t->layout_is_known && !native),
  };
  Function *f = functions_define(&t->table, key, LUA_NAME(guard_of)(t, key, native), &facts);
  f->epoch = main || !t->layout_is_known ? NEVER : t->epoch;
  return f;
}

static bool is_the_same(LuaFunctions *t, lua_State *L, lua_Debug *ar, const KeyEntry *entry)
{
  Function *f = entry->function;
  if (LUA_NAME(guard_of)(t, entry->key, f->native) != entry->guard) return false;
  if (!f->transient || f->epoch == t->epoch) return true;
  lua_getinfo(L, "Su", ar);
  if (identity_of(ar, entry->key, source_hash(ar)) != f->identity) return false;
  if (f->epoch != NEVER) f->epoch = t->epoch;
  return true;
}

Function *LUA_NAME(function_of)(LuaFunctions *t, lua_State *L, lua_Debug *ar, const void *key)
{
  KeyEntry *entry = functions_find_key(&t->table, key);
  return entry && is_the_same(t, L, ar, entry) ? entry->function : define(t, L, ar, key);
}

uint64_t LUA_NAME(guard_of)(const LuaFunctions *t, const void *key, bool native)
{
  return t->layout_is_known ? layout_guard(key, native) : 0;
}

/* ---- Life ------------------------------------------------------------------ */

bool LUA_NAME(functions_open)(LuaFunctions *t, HeatFile *file, const LuaRuntime *runtime)
{
  memset(t, 0, sizeof *t);
  t->runtime = runtime;
  t->layout_is_known = runtime->layout_is_known;
  return functions_open(&t->table, file);
}

void LUA_NAME(functions_close)(LuaFunctions *t)
{
  free(t->sources);
  functions_close(&t->table);
  memset(t, 0, sizeof *t);
}
