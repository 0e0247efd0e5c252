/* Writer of heat files (heat_layout.h): tables that grow, and the header.
**
** One thread writes a HeatFile.  Nothing is buffered: what is counted is in
** the file, so that a killed target leaves everything but its last event. */
#ifndef HEATFILE_H
#define HEATFILE_H

#include "clock.h"
#include "heat_layout.h"
#include "mapping.h"

#include <stdbool.h>

#define HEATFILE_PATH_BYTES 4096

typedef struct HeatTable {
  HeatChunk *chunk;    /* the last one; earlier ones are full.  NULL: no row yet */
  uint64_t next_first; /* first_row of the next chunk */
  uint16_t columns;    /* cells in a row */
} HeatTable;

typedef struct HeatFile {
  HeatHeader *header; /* NULL: closed */
  Mapping mapping;
  HeatTable tables[HEAT_KINDS];
  char path[HEATFILE_PATH_BYTES];
  bool full; /* no more room: tables do not grow any more */
} HeatFile;

typedef struct HeatSettings {
  const char *path;      /* NULL: a file without a name, for calibration */
  const char *mode;      /* "trace", … */
  const char *runtime;   /* "Lua 5.4" */
  uint16_t line_columns; /* columns of HEAT_LINE: 0 = none, 1 = hits, 3 = and times, 4 = and instructions */
  uint16_t vm_states;    /* columns of HEAT_FRAME_SAMPLES; 0: no sampler */
} HeatSettings;

bool heatfile_open(HeatFile *file, const HeatSettings *settings); /* false: errno says why */
void heatfile_close(HeatFile *file);

/* 'rows' rows side by side at the end of a table, zeroed, not yet published.
** Their first row's number goes to *first.  NULL: no room, and file->full. */
void *heatfile_append(HeatFile *file, uint32_t kind, uint32_t rows, uint64_t *first);
void heatfile_publish(HeatFile *file, uint32_t kind, uint32_t rows);

/* Definitions, each published before its number is returned.  Row 0 is
** returned where there is no room. */
uint32_t heatfile_string(HeatFile *file, const char *text, size_t length);
uint32_t heatfile_row32(HeatFile *file, uint32_t kind, const uint32_t *cells);

void heatfile_set_state(HeatFile *file, uint32_t state);
void heatfile_set_note(HeatFile *file, const char *note);
void heatfile_stamp_clock(HeatFile *file, ClockKind kind); /* refreshes now_ticks and now_monotonic_ns */
void heatfile_begin(HeatFile *file);                       /* the recording begins: state recording */
void heatfile_end(HeatFile *file, ClockKind kind);         /* it is over, if it had begun: state stopped */

/* In a forked child: a file of its own, PID in its name, with all definitions
** and no counts.  False: nothing can be recorded in the child. */
bool heatfile_fork(HeatFile *file);

#endif
