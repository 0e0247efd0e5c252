/* Hooks that do nothing: the floor under every tracer that uses hooks.
** Compiled once for each ABI, with -DLUA_ABI=…, against the agent's lua_abi.h. */
#include "lua_abi.h"

static void empty_hook(lua_State *L, lua_Debug *ar)
{
  (void)L, (void)ar;
}

__attribute__((visibility("default"))) int empty_line_hook(lua_State *L);
__attribute__((visibility("default"))) int empty_call_hook(lua_State *L);
__attribute__((visibility("default"))) int empty_hooks(lua_State *L);

int empty_line_hook(lua_State *L)
{
  lua_sethook(L, empty_hook, LUA_MASKLINE, 0);
  return 0;
}

int empty_call_hook(lua_State *L)
{
  lua_sethook(L, empty_hook, LUA_MASKCALL, 0);
  return 0;
}

int empty_hooks(lua_State *L)
{
  lua_sethook(L, empty_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE, 0);
  return 0;
}
