/* Arms the agent in a Lua state, does what the control word says, and sees it off.
**
**            RUN            PAUSE
**   armed ────────▶ recording ⇄ paused        STOP ends either:
**                       ▲        RUN           stopped ── RUN ──▶ the next recording,
**                       └─────────────────────────────────────    in a file of its own
**
** A tick of a slow timer looks at the control word; what it asks for is done at
** the next safe point, in a hook.  LuaJIT code that was compiled while nothing
** was recorded meets no hook; there its own profiler calls us first.
**
** The end comes in one of three ways, and each must leave a complete file:
** lua_close collects a sentinel of ours; os.exit skips that but runs our
** destructor; a signal kills the process, and the file holds what it holds. */
#define _GNU_SOURCE
#include "lua_abi.h"
#include "lua_sampler.h"
#include "lua_tracer.h"
#include "ticker.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define VALUE_MOST_BYTES 4096
#define CONTROL_INTERVAL_NS 10000000u /* of CPU time: who sleeps is left asleep */
#define FLUSHED_INTERVAL_NS 200000u   /* LuaJIT: until the hook is set */
#define DEFAULT_INTERVAL_US 1000
#define MOST_COST 10u /* one part in so many of the time may go into samples */
#define EVERY_EVENT (LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT)

typedef enum Mode { MODE_TRACE, MODE_COVERAGE, MODE_SAMPLE } Mode;

typedef struct Agent {
  LuaRuntime runtime;
  HeatFile file;
  Tracer tracer;                  /* in use unless the mode is sample */
  Sampler sampler;                /* in use if it is */
  Ticker control, sampling;       /* slow and fast; LuaJIT's sampling ticks go to its profiler */
  char path[HEATFILE_PATH_BYTES]; /* of the first recording */
  const char *mode_name;
  Mode mode;
  uint32_t recording; /* number of the file that is open */
  uint64_t interval_ns;
  uint64_t pace_ns;   /* of the sampling ticker now: longer where samples cost too much */
  bool is_controlled; /* else no signal is used, and nobody can ask anything of us */
  uint64_t paused_at_ns, paused_at_cpu_ns;
  volatile uint32_t state; /* HEAT_ARMED …, as in the header */
  bool awaits_script;      /* armed, and the script has not begun */
  volatile bool is_busy;   /* a recording is being closed or opened: ticks find nothing to look at */
  bool gone;               /* its Lua state is closed, or the process ends */
  volatile bool flushed;   /* LuaJIT: compiled code is gone and the engine off, so a hook will be met */
  bool engine_was_on;      /* LuaJIT: before we came */
  struct Agent *next;      /* of this process; agents are never freed */
} Agent;

static const char sentinel_key[] = "lineheat.sentinel";
static Agent *agents;

static void at_safe_point(lua_State *L, lua_Debug *ar);

static Agent *agent_of(lua_State *L)
{
  const void *registry = lua_topointer(L, LUA_REGISTRYINDEX);
  for (Agent *a = __atomic_load_n(&agents, __ATOMIC_ACQUIRE); a; a = a->next)
    if (!a->gone && a->runtime.registry == registry) return a;
  return NULL;
}

static void enlist(Agent *a)
{
  a->next = __atomic_load_n(&agents, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&agents, &a->next, a, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) continue;
}

static void set_state(Agent *a, uint32_t state)
{
  a->state = state;
  heatfile_set_state(&a->file, state);
}

/* ---- One recording --------------------------------------------------------- */

static const char *runtime_name(void)
{
  return LUA_IS_JIT       ? "LuaJIT"
         : LUA_ABI == 501 ? "Lua 5.1"
         : LUA_ABI == 502 ? "Lua 5.2"
         : LUA_ABI == 503 ? "Lua 5.3"
         : LUA_ABI == 504 ? "Lua 5.4"
                          : "Lua 5.5";
}

/* STEM.heat, then STEM.2.heat, STEM.3.heat … */
static bool path_of_recording(char *to, size_t size, const Agent *a)
{
  size_t n = strlen(a->path);
  if (a->recording == 1) return (size_t)snprintf(to, size, "%s", a->path) < size;
  if (n > 5 && strcmp(a->path + n - 5, ".heat") == 0) n -= 5;
  return (size_t)snprintf(to, size, "%.*s.%u.heat", (int)n, a->path, a->recording) < size;
}

static void describe(Agent *a)
{
  HeatHeader *h = a->file.header;
  h->recording = a->recording;
  h->first_ticks = a->runtime.first_ticks;
  h->first_monotonic_ns = a->runtime.first_monotonic_ns;
  h->line_event_ticks_x16 = a->runtime.line_event_ticks_x16;
  h->call_event_ticks_x16 = a->runtime.call_event_ticks_x16;
  h->requested_interval_ns = a->mode == MODE_SAMPLE ? a->interval_ns : 0;
  heatfile_stamp_clock(&a->file, a->runtime.clock);
}

/* NULL, or what went wrong; errno may say why. */
static const char *open_recording(Agent *a)
{
  char path[HEATFILE_PATH_BYTES];
  static const uint16_t line_columns[] = {[MODE_TRACE] = 3, [MODE_COVERAGE] = 1, [MODE_SAMPLE] = 0};
  HeatSettings settings = {path, a->mode_name, runtime_name(), line_columns[a->mode],
                           a->mode == MODE_SAMPLE ? VM_STATES : 0};
  if (!path_of_recording(path, sizeof path, a) || !heatfile_open(&a->file, &settings))
    return "the heat file cannot be made";
  bool opened = a->mode == MODE_SAMPLE ? LUA_NAME(sampler_open)(&a->sampler, &a->runtime, &a->file)
                                       : LUA_NAME(tracer_open)(&a->tracer, &a->runtime, &a->file);
  if (!opened) {
    heatfile_close(&a->file);
    unlink(path);
    errno = ENOSPC;
    return "there is no room for the heat file";
  }
  describe(a);
  return NULL;
}

static void close_recording(Agent *a)
{
  if (a->mode == MODE_SAMPLE) LUA_NAME(sampler_close)(&a->sampler);
  else LUA_NAME(tracer_close)(&a->tracer);
  heatfile_close(&a->file);
}

/* The hook that a coroutine has while nothing is asked of it. */
static void set_usual_hook(const Agent *a, lua_State *L)
{
  if (a->state == HEAT_RECORDING && a->mode != MODE_SAMPLE)
    lua_sethook(L, LUA_NAME(tracer_hook)(&a->tracer), a->tracer.mask, 0);
  else lua_sethook(L, NULL, 0, 0);
}

/* LuaJIT compiles some loops although a hook is set, and their events would be missing. */
static void set_engine(const Agent *a, lua_State *L, bool on)
{
#if LUA_IS_JIT
  if (!a->engine_was_on) return;
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | (on ? LUAJIT_MODE_ON : LUAJIT_MODE_OFF));
  if (!on) luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_FLUSH);
#else
  (void)a, (void)L, (void)on;
#endif
}

static void count_on(Agent *a, lua_State *L)
{
  if (a->mode == MODE_SAMPLE) {
    LUA_NAME(sampler_begin)(&a->sampler, a->interval_ns);
    a->pace_ns = a->interval_ns;
    ticker_set(&a->sampling, a->interval_ns);
    return;
  }
  set_engine(a, L, false);
  LUA_NAME(tracer_begin)(&a->tracer, L);
}

static void count_on_in_mid_run(Agent *a, lua_State *L)
{
  count_on(a, L);
  if (a->mode == MODE_TRACE) LUA_NAME(tracer_adopt)(&a->tracer, L);
#if !LUA_IS_JIT
  lua_State *chain[RUNNING_MOST]; /* those that wait for L, too */
  bool in_native;
  if (a->mode == MODE_SAMPLE) return;
  for (int i = LUA_NAME(running_coroutines)(&a->runtime, chain, &in_native); i-- > 0;)
    if (!lua_gethook(chain[i])) lua_sethook(chain[i], LUA_NAME(tracer_hook)(&a->tracer), a->tracer.mask, 0);
#endif
}

static void count_off(Agent *a)
{
  if (a->mode == MODE_SAMPLE) ticker_set(&a->sampling, 0);
  else LUA_NAME(tracer_end)(&a->tracer);
}

static void begin(Agent *a)
{
  heatfile_begin(&a->file);
  set_state(a, HEAT_RECORDING);
}

static void begin_next(Agent *a, lua_State *L)
{
  a->is_busy = true;
  close_recording(a);
  a->recording++;
  if (open_recording(a)) a->gone = true; /* no file: nobody can ask anything of us any more */
  a->is_busy = false;
  if (a->gone) return;
  begin(a);
  count_on_in_mid_run(a, L);
}

static void pause_recording(Agent *a)
{
  count_off(a);
  a->paused_at_ns = clock_monotonic_ns();
  a->paused_at_cpu_ns = clock_thread_cpu_ns();
  set_state(a, HEAT_PAUSED);
}

/* The pause is in no total. */
static void end_pause(Agent *a)
{
  a->file.header->paused_ns += clock_monotonic_ns() - a->paused_at_ns;
  a->file.header->start_cpu_ns += clock_thread_cpu_ns() - a->paused_at_cpu_ns;
}

static void stop(Agent *a)
{
  if (a->state == HEAT_RECORDING) count_off(a);
  if (a->state == HEAT_PAUSED) end_pause(a);
  heatfile_end(&a->file, a->runtime.clock);
  a->state = HEAT_STOPPED;
}

/* What the control word wants now; false: it has it already. */
static bool is_wanted(const Agent *a, uint32_t control)
{
  if (a->gone) return false;
  switch (control) {
  case HEAT_RUN: return a->state != HEAT_RECORDING && !a->awaits_script;
  case HEAT_PAUSE: return a->state == HEAT_RECORDING;
  case HEAT_STOP: return a->state != HEAT_STOPPED;
  default: return false;
  }
}

static void obey(Agent *a, lua_State *L)
{
  uint32_t control = __atomic_load_n(&a->file.header->control, __ATOMIC_ACQUIRE);
  if (!is_wanted(a, control)) return;
  if (control == HEAT_STOP) {
    stop(a);
  } else if (control == HEAT_PAUSE) {
    pause_recording(a);
  } else if (a->state == HEAT_PAUSED) {
    end_pause(a);
    set_state(a, HEAT_RECORDING);
    count_on_in_mid_run(a, L);
  } else if (a->state == HEAT_STOPPED) {
    begin_next(a, L);
  } else {
    begin(a);
    count_on_in_mid_run(a, L);
  }
}

/* A recording that ended by itself (no space, no memory) has said so in the header. */
static void notice_end(Agent *a)
{
  if (a->state == HEAT_STOPPED || a->file.header->state != HEAT_STOPPED) return;
  a->state = HEAT_STOPPED;
  a->file.header->control = HEAT_STOP; /* only a new wish begins the next recording */
}

static void stop_for_want_of_space(Agent *a)
{
  heatfile_set_note(&a->file, "no space left for the heat file: recording ended, the program went on");
  stop(a);
  a->file.header->control = HEAT_STOP;
}

/* ---- Ticks and safe points -------------------------------------------------- */

/* lua.c sets a hook of its own on Ctrl-C, a host may have one: it stays. */
static bool is_ours(const Agent *a, lua_State *L)
{
  lua_Hook hook = lua_gethook(L);
  return !hook || hook == at_safe_point || hook == LUA_NAME(tracer_hook)(&a->tracer);
}

/* A signal may set another hook between our look and our own setting of one. */
static void take_hook_off(const Agent *a, lua_State *L)
{
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (lua_gethook(L) == at_safe_point) set_usual_hook(a, L);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static uint32_t asked(const Agent *a)
{
  return __atomic_load_n(&a->file.header->control, __ATOMIC_ACQUIRE);
}

static void ask_for_hook(const Agent *a, lua_State *L)
{
  if (is_ours(a, L) && lua_gethook(L) != at_safe_point) lua_sethook(L, at_safe_point, EVERY_EVENT, 1);
}

#if LUA_IS_JIT

/* ---- LuaJIT ----
**
** A hook is global, but compiled code meets none.  What it meets, if it was
** compiled while LuaJIT's profiler was on, is that profiler's call; so it is
** on from the start, with its own timer off, and we raise its signal. */

static void tick(Agent *a, const siginfo_t *info)
{
  bool is_traced = a->state == HEAT_RECORDING && a->mode != MODE_SAMPLE;
  (void)info;
  if (!is_wanted(a, asked(a))) return;
  if (is_traced || a->flushed) ask_for_hook(a, a->runtime.L);
  else if (a->state != HEAT_RECORDING) raise(SIGPROF);
}

/* A hook set in here would be undone on return: the tick after this one sets it. */
static void flush_compiled_code(Agent *a, lua_State *L)
{
  set_engine(a, L, false);
  if (!a->engine_was_on) luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_FLUSH);
  a->flushed = true;
  ticker_set(&a->control, FLUSHED_INTERVAL_NS);
}

static int state_of(int letter)
{
  switch (letter) {
  case 'N': return VM_NATIVE;
  case 'C': return VM_C;
  case 'G': return VM_GC;
  case 'J': return VM_JIT;
  default: return VM_INTERPRETED;
  }
}

static void on_profile(void *data, lua_State *L, int samples, int vm_state)
{
  Agent *a = data;
  (void)samples;
  if (a->gone) return;
  if (a->mode == MODE_SAMPLE && a->state == HEAT_RECORDING) {
    uint32_t ticks = LUA_NAME(sampler_ticks)(&a->sampler);
    if (ticks > 0) LUA_NAME(sampler_count)(&a->sampler, &L, 1, ticks, state_of(vm_state));
    if (a->file.full) stop_for_want_of_space(a);
  }
  if (!is_wanted(a, asked(a))) return;
  if (a->mode == MODE_SAMPLE || asked(a) == HEAT_STOP) obey(a, L);
  else flush_compiled_code(a, L);
}

/* The engine is off while lines are counted, and on again afterwards. */
static void after_safe_point(Agent *a, lua_State *L)
{
  if (a->flushed) ticker_set(&a->control, CONTROL_INTERVAL_NS);
  a->flushed = false;
  if (a->state != HEAT_RECORDING) set_engine(a, L, true);
}

static bool engine_is_on(lua_State *L)
{
  int top = lua_gettop(L);
  bool is_on = luaL_loadstring(L, "return (require('jit').status())") == LUA_OK && lua_pcall(L, 0, 1, 0) == LUA_OK
               && lua_toboolean(L, -1);
  lua_settop(L, top);
  return is_on;
}

/* lua_close stops the profiler, which puts back what SIGPROF did before: that must not kill. */
static bool prepare_profiler(Agent *a)
{
  struct sigaction action;
  struct itimerval silent = {{0, 0}, {0, 0}};
  if (sigaction(SIGPROF, NULL, &action) == 0 && action.sa_handler == SIG_DFL) signal(SIGPROF, SIG_IGN);
  a->engine_was_on = engine_is_on(a->runtime.L);
  luaJIT_profile_start(a->runtime.L, "li1000", on_profile, a);
  setitimer(ITIMER_PROF, &silent, NULL);
  return true;
}

static bool make_sampling_ticker(Agent *a)
{
  return ticker_make(&a->sampling, TICKER_MONOTONIC, SIGPROF, NULL, a);
}

#else

/* ---- PUC Lua ----
**
** A hook belongs to one coroutine, and every instruction meets it. */

/* Recording began in mid-run: this one existed before, and has met no hook since. */
static void hook_unseen_coroutine(Agent *a, lua_State *L)
{
  if (lua_gethook(L)) return;
  a->file.header->unseen_states++;
  lua_sethook(L, LUA_NAME(tracer_hook)(&a->tracer), a->tracer.mask, 0);
}

static void tick(Agent *a, const siginfo_t *info)
{
  lua_State *chain[RUNNING_MOST];
  bool in_native, is_recorded = a->state == HEAT_RECORDING, is_sampled = is_recorded && a->mode == MODE_SAMPLE;
  if (!is_recorded && !is_wanted(a, asked(a))) return;
  lua_State *L = chain[LUA_NAME(running_coroutines)(&a->runtime, chain, &in_native) - 1];
  if (is_recorded && !is_sampled && !is_wanted(a, asked(a))) {
    hook_unseen_coroutine(a, L);
    return;
  }
  if (is_sampled && is_ours(a, L)) LUA_NAME(sampler_tick)(&a->sampler, in_native);
  else if (is_sampled) a->file.header->lost_ticks++;
  (void)info;
  ask_for_hook(a, L);
}

/* A deep stack may take longer to read than the interval; the program must get on nevertheless. */
static void back_off(Agent *a, uint64_t took_ns)
{
  uint64_t wanted = took_ns * MOST_COST > a->interval_ns ? took_ns * MOST_COST : a->interval_ns;
  if (wanted < 2 * a->pace_ns && 2 * wanted > a->pace_ns) return;
  a->pace_ns = wanted;
  ticker_set(&a->sampling, wanted);
}

static void sample(Agent *a, lua_State *L)
{
  lua_State *chain[RUNNING_MOST];
  bool in_native;
  int count = LUA_NAME(running_coroutines)(&a->runtime, chain, &in_native);
  if (chain[count - 1] != L) chain[0] = L, count = 1; /* resumed by a host: nobody knows by whom */
  uint64_t took_ns = LUA_NAME(sampler_sample)(&a->sampler, chain, count);
  if (a->file.full) stop_for_want_of_space(a);
  else back_off(a, took_ns);
}

static void after_safe_point(Agent *a, lua_State *L)
{
  if (a->mode == MODE_SAMPLE && a->state == HEAT_RECORDING) sample(a, L);
}

static bool prepare_profiler(Agent *a)
{
  (void)a;
  return true;
}

static bool make_sampling_ticker(Agent *a)
{
  return ticker_make(&a->sampling, TICKER_MONOTONIC, ticker_signal(), NULL, a);
}

#endif

static void on_tick(int signal, siginfo_t *info, void *context)
{
  Agent *a = info->si_value.sival_ptr;
  int error = errno;
  (void)signal, (void)context;
  if (info->si_code == SI_TIMER && !a->gone && !a->is_busy) {
    notice_end(a);
    tick(a, info);
  }
  errno = error;
}

static void at_safe_point(lua_State *L, lua_Debug *ar)
{
  Agent *a = agent_of(L);
  if (!a) {
    lua_sethook(L, NULL, 0, 0);
    return;
  }
  if (a->state == HEAT_RECORDING && a->mode != MODE_SAMPLE && ar->event != LUA_HOOKCOUNT)
    LUA_NAME(tracer_hook) (&a->tracer)(L, ar);
  obey(a, L);
  after_safe_point(a, L);
  take_hook_off(a, L);
}

static bool make_tickers(Agent *a)
{
  if (!ticker_make(&a->control, TICKER_CPU_TIME, ticker_signal(), on_tick, a) || !make_sampling_ticker(a)) return false;
  ticker_set(&a->control, CONTROL_INTERVAL_NS);
  return true;
}

/* The chunk that armed us is still running: the next main chunk is the script. */
static void await_script(lua_State *L, lua_Debug *ar)
{
  Agent *a = agent_of(L);
  if (!a) return;
  lua_getinfo(L, "S", ar);
  if (ar->what[0] != 'm') return;
  lua_sethook(L, NULL, 0, 0);
  a->awaits_script = false;
  if (a->state == HEAT_STOPPED) return;
  begin(a);
  count_on(a, L);
  if (a->mode == MODE_TRACE) LUA_NAME(tracer_hook) (&a->tracer)(L, ar);
}

/* ---- The end --------------------------------------------------------------- */

static void see_off(Agent *a)
{
  if (a->gone) return;
  ticker_delete(&a->sampling);
  ticker_delete(&a->control);
  notice_end(a);
  if (a->state != HEAT_STOPPED) stop(a);
  a->gone = true;
}

static int on_collected(lua_State *L)
{
  Agent **held = lua_touserdata(L, 1);
  if (held && *held) {
    lua_sethook((*held)->runtime.L, NULL, 0, 0);
    see_off(*held);
    *held = NULL;
  }
  return 0;
}

static __attribute__((destructor)) void on_exit_of_process(void)
{
  for (Agent *a = __atomic_load_n(&agents, __ATOMIC_ACQUIRE); a; a = a->next) see_off(a);
}

/* The child counts from zero, in a file of its own; timers are not inherited. */
static void fork_agent(Agent *a)
{
  a->control.is_made = a->sampling.is_made = false;
  if (a->gone) return;
  if (!heatfile_fork(&a->file)) {
    a->gone = true;
    a->tracer.running = NULL;
    return;
  }
  snprintf(a->path, sizeof a->path, "%s", a->file.path);
  a->recording = 1;
  if (a->mode != MODE_SAMPLE) LUA_NAME(tracer_forked)(&a->tracer);
  if (a->is_controlled) make_tickers(a);
  if (a->state == HEAT_RECORDING && a->mode == MODE_SAMPLE) {
    LUA_NAME(sampler_begin)(&a->sampler, a->interval_ns);
    ticker_set(&a->sampling, a->interval_ns);
  }
}

static void on_forked_child(void)
{
  for (Agent *a = __atomic_load_n(&agents, __ATOMIC_ACQUIRE); a; a = a->next) fork_agent(a);
}

static void prepare_process(void)
{
  mapping_pin_library((const void *)sentinel_key); /* lua_close unloads libraries, our destructor must stay */
  pthread_atfork(NULL, NULL, on_forked_child);
}

static void set_sentinel(lua_State *L, Agent *a)
{
  Agent **held = lua_newuserdata(L, sizeof(Agent *));
  *held = a;
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

static bool choose_mode(Agent *a, const char *name)
{
  static const char *const names[] = {[MODE_TRACE] = "trace", [MODE_COVERAGE] = "coverage", [MODE_SAMPLE] = "sample"};
  for (int mode = MODE_TRACE; mode <= MODE_SAMPLE; mode++) {
    if (strcmp(name, names[mode]) != 0) continue;
    a->mode = (Mode)mode;
    a->mode_name = names[mode];
    return true;
  }
  return false;
}

static const char *configure(Agent *a, const char *configuration)
{
  char value[VALUE_MOST_BYTES];
  if (!configuration || !setting(configuration, "file", a->path)) return "the agent's configuration names no file";
  if (!setting(configuration, "mode", value) || !choose_mode(a, value)) return "the agent knows no such mode";
  a->interval_ns = (setting(configuration, "interval_us", value) ? strtoull(value, NULL, 10) : DEFAULT_INTERVAL_US)
                   * 1000u;
  a->is_controlled = !setting(configuration, "uncontrolled", value);
  a->awaits_script = !setting(configuration, "paused", value);
  a->recording = 1;
  return NULL;
}

static int refuse(lua_State *L, Agent *a, const char *why)
{
  char line[VALUE_MOST_BYTES + 256];
  const char *reason = errno ? strerror(errno) : "";
  snprintf(line, sizeof line, "%s: %s%s%s", why, a ? a->path : "", *reason ? ": " : "", reason);
  free(a);
  lua_pushnil(L);
  lua_pushstring(L, line);
  return 2;
}

/* ---- Arming ---------------------------------------------------------------- */

int LUA_NAME(lineheat_arm)(lua_State *L);

int LUA_NAME(lineheat_arm)(lua_State *L)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  Agent *a = calloc(1, sizeof *a);
  errno = 0;
  if (!a) return refuse(L, NULL, "out of memory");
  const char *problem = configure(a, lua_tostring(L, 1));
  if (problem) return refuse(L, a, problem);
  pthread_once(&once, prepare_process);
  LUA_NAME(runtime_learn)(&a->runtime, L, a->mode == MODE_TRACE);
  problem = open_recording(a);
  if (problem) return refuse(L, a, problem);
  if (a->is_controlled && !(prepare_profiler(a) && make_tickers(a))) {
    close_recording(a);
    return refuse(L, a, "no timer can be made");
  }
  enlist(a);
  LUA_NAME(tracer_enlist)(&a->tracer);
  set_sentinel(L, a);
  if (!a->awaits_script) __atomic_store_n(&a->file.header->control, HEAT_PAUSE, __ATOMIC_RELEASE);
  set_state(a, HEAT_ARMED);
  if (a->awaits_script) lua_sethook(L, await_script, LUA_MASKCALL, 0);
  lua_pushboolean(L, 1);
  return 1;
}
