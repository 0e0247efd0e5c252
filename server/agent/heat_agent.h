/* What the agent's library exports.
**
** lineheat_arm   a lua_CFunction: arms the agent in the Lua state that calls
**                it.  Its one argument is a string of lines "key=value"; it
**                returns true, or nil and one line that says why not.
** lineheat_host  runs a script as the 'lua' command does, on the interpreter
**                library that this process has loaded with global symbols. */
#ifndef HEAT_AGENT_H
#define HEAT_AGENT_H

#define HEAT_EXPORT __attribute__((visibility("default")))

struct lua_State;

HEAT_EXPORT int lineheat_arm(struct lua_State *L);

/* arguments: the name the interpreter goes by in messages ("lua", "luajit"),
** the configuration for lineheat_arm ("" = do not arm), the script, then the
** script's own arguments.  Returns the exit status of the script. */
HEAT_EXPORT int lineheat_host(int count, char **arguments);

#endif
