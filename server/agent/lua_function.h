/* Functions of one Lua state: what a key means, asked of the runtime once. */
#ifndef LUA_FUNCTION_H
#define LUA_FUNCTION_H

#include "functions.h"
#include "lua_abi.h"
#include "lua_runtime.h"

typedef struct SourceEntry {
  uint64_t hash;
  uint32_t row;
  bool transient; /* its text came from no file */
} SourceEntry;

typedef struct LuaFunctions {
  Functions table;
  SourceEntry *sources; /* open addressing by hash */
  uint64_t source_mask, source_count;
  uint64_t epoch;       /* counts new sources that come from no file */
  uint64_t files;       /* counts new sources that are files: what is kept of a key may now be wrong */
  bool layout_is_known; /* of runtime, close at hand */
  const LuaRuntime *runtime;
} LuaFunctions;

bool LUA_NAME(functions_open)(LuaFunctions *functions, HeatFile *file, const LuaRuntime *runtime);
void LUA_NAME(functions_close)(LuaFunctions *functions);
/* The function that runs in ar's frame; 'key' as layout_running has it. */
Function *LUA_NAME(function_of)(LuaFunctions *functions, lua_State *L, lua_Debug *ar, const void *key);
/* The guard of a key, 0 where the layout is not known. */
uint64_t LUA_NAME(guard_of)(const LuaFunctions *functions, const void *key, bool native);

#endif
