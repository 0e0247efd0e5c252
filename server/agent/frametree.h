/* The tree of stacks that a sampler has seen.
**
** A row says: this function, executing that line, on top of that row.  Samples
** are counted in its cells, one for each VM state, and every sample goes into
** the timeline, a ring. */
#ifndef FRAMETREE_H
#define FRAMETREE_H

#include "heatfile.h"

#include <stdbool.h>
#include <stdint.h>

#define FRAMETREE_MOST_ROWS (1u << 18)
#define FRAMETREE_TIMELINE_ROWS (1u << 16)

typedef struct FrameEntry {
  uint32_t parent, function, line, zone;
  uint32_t row;      /* in HEAT_FRAME; 0: free */
  uint64_t *samples; /* cells in HEAT_FRAME_SAMPLES */
} FrameEntry;

typedef struct FrameTree {
  HeatFile *file;
  FrameEntry *entries; /* open addressing */
  uint64_t mask, count;
  HeatChunk *timeline;
  uint64_t last_sample_ns; /* monotonic */
} FrameTree;

bool frametree_open(FrameTree *tree, HeatFile *file); /* false: out of memory or disk */
void frametree_close(FrameTree *tree);

/* The row of 'function' at 'line' on top of 'parent' (0: the root), made if need be; the parent's where there
** is no room.  Valid until the next call: counting goes through it. */
uint32_t frametree_row(FrameTree *tree, uint32_t parent, uint32_t function, uint32_t line, uint64_t **samples);
void frametree_note_sample(FrameTree *tree, uint32_t row, uint64_t heap_bytes, uint64_t now_ns);

#endif
