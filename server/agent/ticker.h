/* A timer that sends a signal to one thread, at an interval that can be changed.
**
** It runs on the monotonic clock: CPU-clock timers tick every 4 ms whatever is
** asked of them. */
#ifndef TICKER_H
#define TICKER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Ticker {
  void *timer;  /* timer_t */
  bool is_made; /* false: no timer */
} Ticker;

typedef void TickHandler(int signal, siginfo_t *info, void *context);

int ticker_signal(void); /* the one that tickers of ours use, unless another is given */
/* Ticks come to the calling thread, as 'signal' with 'data'.  NULL as handler: somebody else's stays. */
bool ticker_make(Ticker *ticker, int signal, TickHandler *handler, void *data);
void ticker_set(Ticker *ticker, uint64_t interval_ns); /* 0: silent */
void ticker_delete(Ticker *ticker);
/* 1 + the ticks that this one stands for because they came too fast. */
uint32_t ticker_count(const siginfo_t *info);

#endif
