/* What the library exports: finds out which Lua this process runs, and goes
** to the code that was compiled for it. */
#include "heat_agent.h"

#include <locale.h>
#include <stddef.h>
#include <stdio.h>

/* ---- Which Lua ------------------------------------------------------------
**
** Declared without arguments, for only their presence is asked: each came
** with one version.  LuaJIT has some of the later ones as well. */

#define MARK __attribute__((weak)) extern
MARK void luaJIT_setmode(void);
MARK void luaL_openselectedlibs(void);
MARK void lua_newuserdatauv(void);
MARK void lua_isyieldable(void);
MARK void lua_pcallk(void);
MARK void lua_gettop(void);

#define DECLARE(abi)                           \
  int lineheat_arm_##abi(struct lua_State *L); \
  int lineheat_host_##abi(int count, char **arguments)
DECLARE(210);
DECLARE(501);
DECLARE(502);
DECLARE(503);
DECLARE(504);
DECLARE(505);

typedef struct Abi {
  void (*mark)(void); /* NULL: not this one */
  int (*arm)(struct lua_State *L);
  int (*host)(int count, char **arguments);
} Abi;

/* The first whose mark exists is the one. */
static const Abi abis[] = {
    {luaJIT_setmode, lineheat_arm_210, lineheat_host_210},
    {luaL_openselectedlibs, lineheat_arm_505, lineheat_host_505},
    {lua_newuserdatauv, lineheat_arm_504, lineheat_host_504},
    {lua_isyieldable, lineheat_arm_503, lineheat_host_503},
    {lua_pcallk, lineheat_arm_502, lineheat_host_502},
    {lua_gettop, lineheat_arm_501, lineheat_host_501},
};

static const Abi *abi_of_process(void)
{
  for (size_t i = 0; i < sizeof abis / sizeof *abis; i++)
    if (abis[i].mark) return &abis[i];
  fputs("lineheat: this program does not export Lua's C API, so C libraries such as the agent cannot work in it; "
        "choose another interpreter with --runtime\n",
        stderr);
  return NULL;
}

/* ---- Exported ------------------------------------------------------------- */

/* Without Lua's functions nothing can be returned, so the line above has to do. */
int lineheat_arm(struct lua_State *L)
{
  const Abi *abi = abi_of_process();
  return abi ? abi->arm(L) : 0;
}

int lineheat_host(int count, char **arguments)
{
  const Abi *abi = abi_of_process();
  if (!abi) return 1;
  setlocale(LC_ALL, "C"); /* as a program of its own begins; ours is loaded into one that has set the user's */
  return abi->host(count, arguments);
}
