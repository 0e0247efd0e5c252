/* Linux: clocks, and files that are mapped while they grow.
**
** The one C source that knows the system; another system brings its own with
** the same functions (clock.h, mapping.h). */
#define _GNU_SOURCE
#include "clock.h"
#include "mapping.h"
#include "ticker.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* ---- Clocks --------------------------------------------------------------- */

#define NS_PER_S 1000000000ull

static uint64_t read_clock(clockid_t id)
{
  struct timespec t;
  clock_gettime(id, &t);
  return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
  return read_clock(CLOCK_MONOTONIC);
}
uint64_t clock_wall_ns(void)
{
  return read_clock(CLOCK_REALTIME);
}
uint64_t clock_thread_cpu_ns(void)
{
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

bool clock_tsc_is_invariant(void)
{
#if defined(__x86_64__)
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8));
#else
  return false;
#endif
}

/* ---- Growing mappings ----------------------------------------------------- */

bool mapping_open(Mapping *m, const char *path)
{
  uint64_t want = MAPPING_MOST_BYTES;
  memset(m, 0, sizeof *m);
  m->fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)
               : memfd_create("lineheat", MFD_CLOEXEC);
  if (m->fd < 0) return false;
  /* Under 'ulimit -v' or valgrind a large reservation is refused: take less. */
  for (m->base = MAP_FAILED; m->base == MAP_FAILED && want >= MAPPING_LEAST_BYTES; want /= 4) {
    m->base = mmap(NULL, want, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    m->reserved = want;
  }
  if (m->base != MAP_FAILED) return true;
  close(m->fd);
  errno = ENOMEM;
  return false;
}

void *mapping_grow(Mapping *m, uint64_t bytes)
{
  char *at = m->base + m->bytes;
  struct rlimit most; /* beyond it the signal SIGXFSZ would end the target */
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && m->bytes + bytes > most.rlim_cur) {
    errno = EFBIG;
    return NULL;
  }
  if (bytes > m->reserved - m->bytes) {
    errno = ENOSPC;
    return NULL;
  }
  /* Blocks exist before they are mapped, so a full disk is an error here and never a SIGBUS. */
  int error = posix_fallocate(m->fd, (off_t)m->bytes, (off_t)bytes);
  if (error) {
    errno = error;
    return NULL;
  }
  if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, m->fd, (off_t)m->bytes) == MAP_FAILED)
    return NULL;
  m->bytes += bytes;
  return at;
}

static bool write_all(int fd, const char *from, uint64_t bytes)
{
  while (bytes > 0) {
    ssize_t n = write(fd, from, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    from += n;
    bytes -= (uint64_t)n;
  }
  return true;
}

bool mapping_move_to(Mapping *m, const char *path)
{
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd >= 0 && write_all(fd, m->base, m->bytes)
      && mmap(m->base, m->bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, fd, 0) != MAP_FAILED) {
    close(m->fd);
    m->fd = fd;
    return true;
  }
  if (fd >= 0) close(fd);
  return false;
}

void mapping_detach(Mapping *m)
{
  mmap(m->base, m->bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  close(m->fd);
  m->fd = -1;
}

void mapping_close(Mapping *m)
{
  munmap(m->base, m->reserved);
  if (m->fd >= 0) close(m->fd);
  memset(m, 0, sizeof *m);
  m->fd = -1;
}

bool memory_read(const void *from, void *to, size_t bytes)
{
  struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

bool mapping_pin_library(const void *symbol)
{
  Dl_info info;
  return dladdr(symbol, &info) && dlopen(info.dli_fname, RTLD_NOW | RTLD_NODELETE | RTLD_NOLOAD);
}

/* ---- Ticks ----------------------------------------------------------------- */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

int ticker_signal(void)
{
  return SIGRTMAX - 3;
}

bool ticker_make(Ticker *ticker, TickerClock clock, int signal, TickHandler *handler, void *data)
{
  struct sigaction action;
  struct sigevent event;
  timer_t timer;
  memset(&action, 0, sizeof action);
  memset(&event, 0, sizeof event);
  action.sa_sigaction = handler;
  sigfillset(&action.sa_mask); /* who sets a hook on Ctrl-C must not come in between */
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event.sigev_value.sival_ptr = data;
  event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
  if (handler && sigaction(signal, &action, NULL) != 0) return false;
  if (timer_create(clock == TICKER_CPU_TIME ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &event, &timer) != 0)
    return false;
  ticker->timer = timer;
  ticker->is_made = true;
  return true;
}

void ticker_set(Ticker *ticker, uint64_t interval_ns)
{
  struct itimerspec times;
  if (!ticker->is_made) return;
  times.it_interval.tv_sec = (time_t)(interval_ns / NS_PER_S);
  times.it_interval.tv_nsec = (long)(interval_ns % NS_PER_S);
  times.it_value = times.it_interval;
  timer_settime(ticker->timer, 0, &times, NULL);
}

void ticker_delete(Ticker *ticker)
{
  if (!ticker->is_made) return;
  ticker->is_made = false;
  timer_delete(ticker->timer);
}
