/* A timer that sends a signal to one thread, at an interval that can be changed.
**
** On the monotonic clock it keeps any interval, but interrupts a thread that
** sleeps.  On the thread's CPU clock it lets it sleep, but ticks every 4 ms at
** best, whatever is asked of it. */
#ifndef TICKER_H
#define TICKER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Ticker {
  void *timer;  /* timer_t */
  bool is_made; /* false: no timer */
} Ticker;

typedef enum TickerClock { TICKER_MONOTONIC, TICKER_CPU_TIME } TickerClock;

typedef void TickHandler(int signal, siginfo_t *info, void *context);

int ticker_signal(void); /* the one that tickers of ours use, unless another is given */
/* Ticks come to the calling thread, as 'signal' with 'data'.  NULL as handler: somebody else's stays. */
bool ticker_make(Ticker *ticker, TickerClock clock, int signal, TickHandler *handler, void *data);
void ticker_set(Ticker *ticker, uint64_t interval_ns); /* 0: silent */
void ticker_delete(Ticker *ticker);
#endif
