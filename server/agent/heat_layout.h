/* Layout of a heat file.
**
** One header page, then chunks that are only ever appended:
**
**   +--------+---------+---------+---------+----
**   | header | chunk   | chunk   | chunk   | ...        little-endian throughout
**   +--------+---------+---------+---------+----
**
** Every chunk holds rows of one table.  A table has cells of one width (1, 4
** or 8 bytes) and a fixed number of columns; the cells of a row lie side by
** side, so a column is a strided view and no row is ever decoded.
** 'count' is published last, with release order: rows below it are complete.
**
** The same numbers stand in server/lineheat/heatfile.py and, as a table for
** people, in server/README.md; tests/test_heat_layout.py compares all three. */
#ifndef HEAT_LAYOUT_H
#define HEAT_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define HEAT_MAGIC "LINEHEAT"
#define HEAT_VERSION 1u
#define HEAT_HEADER_BYTES 4096u
#define HEAT_CHUNK_HEADER_BYTES 64u
#define HEAT_NOTE_BYTES 256u

/* Control word: what the reader asks for. */
enum { HEAT_RUN = 0, HEAT_PAUSE = 1, HEAT_STOP = 2 };

/* State word: what the recording does.  The last two are the runner's to write. */
enum { HEAT_ARMED = 0, HEAT_RECORDING = 1, HEAT_PAUSED = 2, HEAT_STOPPED = 3, HEAT_FINISHED = 4, HEAT_DIED = 5 };

/* How the target ended, as the runner saw it. */
enum { HEAT_EXIT_UNKNOWN = 0, HEAT_EXIT_STATUS = 1, HEAT_EXIT_SIGNAL = 2 };

typedef struct HeatHeader {
  /*   0: what this file is; written once, before the magic */
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint32_t pid;       /* of the target */
  uint32_t recording; /* 1 for the first recording of a target, 2 for the next, … */
  char mode[16];      /* "trace", "coverage", "count", "sample", NUL-padded */
  char runtime[24];   /* "Lua 5.4", NUL-padded */
  /*  64: written by whoever controls the target; a cache line of its own */
  uint32_t control; /* HEAT_RUN … HEAT_STOP */
  uint32_t control_padding[15];
  /* 128: written by the agent, at the end by the runner; a cache line of its own */
  uint32_t state;      /* HEAT_ARMED … HEAT_DIED */
  uint32_t exit_kind;  /* HEAT_EXIT_… */
  uint32_t exit_value; /* exit status, or signal number */
  uint32_t state_padding[13];
  /* 192: clocks.  ticks per ns = (now_ticks - first_ticks) / (now_monotonic_ns - first_monotonic_ns) */
  uint64_t first_monotonic_ns; /* CLOCK_MONOTONIC and tick counter, read together at load … */
  uint64_t first_ticks;
  uint64_t now_monotonic_ns; /* … and together again, the later the better */
  uint64_t now_ticks;
  uint64_t start_wall_ns;      /* since the epoch, when the recording began */
  uint64_t start_monotonic_ns; /* when the recording began; 0 = not yet */
  uint64_t stop_monotonic_ns;  /* when it ended; 0 = not yet, or the target died */
  uint64_t file_bytes;         /* published: header and all chunks that are complete */
  /* 256: totals */
  uint64_t start_cpu_ns;          /* CPU time of the recorded thread when the recording began … */
  uint64_t now_cpu_ns;            /* … and when it ended; 0 = not known */
  uint64_t requested_interval_ns; /* sampler; 0 = none */
  uint64_t samples;               /* stacks taken, each with its weight in ticks of the timer */
  uint64_t paused_ns;             /* sum of all pauses */
  uint64_t line_event_ticks_x16;  /* calibrated cost of one line event, in 1/16 ticks; 0 = not known */
  uint64_t call_event_ticks_x16;  /* the same for a call and its return */
  uint64_t current_row;           /* tree row at work: its self ticks lag behind its lines' until a call or return */
  /* 320: what was lost or folded, each with its own counter */
  uint64_t lost_ticks;       /* timer ticks without a sample */
  uint64_t cut_stacks;       /* calls or samples deeper than the tree goes; they count for their caller's row */
  uint64_t full_tables;      /* rows that found no room */
  uint64_t folded_calls;     /* recursion so deep that it was folded into an outer row */
  uint64_t resyncs;          /* frames that were found open instead of being seen to open */
  uint64_t evicted_threads;  /* shadow stacks given up to keep memory bounded */
  uint64_t unseen_states;    /* Lua states or threads that could not be recorded */
  uint64_t dropped_timeline; /* ring rows overwritten */
  uint64_t dropped_events;
  uint64_t off_cpu_ticks; /* preempted, asleep, blocked: in no line's self time */
  uint64_t agent_ticks;   /* the agent's own slow paths: in no line's self time */
  uint64_t spare_losses[5];
  /* 448: one line for people: why a recording stopped by itself */
  char note[HEAT_NOTE_BYTES]; /* UTF-8, NUL-padded */
} HeatHeader;

typedef struct HeatChunk {
  uint32_t kind;      /* HEAT_TEXT …; published last, 0 = not ready */
  uint32_t owner;     /* thread row that alone writes it; SOURCE_TEXT: the source row */
  uint64_t bytes;     /* of the chunk, this header included; a multiple of 4096 */
  uint64_t first_row; /* sum of the capacities of all earlier chunks of this kind */
  uint32_t capacity;  /* rows */
  uint16_t columns;
  uint16_t width; /* bytes in a cell: 1, 4 or 8 */
  uint64_t count; /* rows published; in a ring: rows ever written */
  uint64_t padding[3];
} HeatChunk;

/* Tables and their columns in order.  Names, kinds, texts and letters are rows
** of HEAT_STRING, row 0 of which is "". */
enum {
  HEAT_TEXT = 1,       /* width 1: UTF-8 or whatever bytes the runtime gave */
  HEAT_STRING = 2,     /* width 4: offset in the text, bytes */
  HEAT_SOURCE = 3,     /* width 4: name, kind ("file", "string", "native"), text (may be cut), hash low, hash high */
  HEAT_FUNCTION = 4,   /* width 4: source, name, kind ("lua", "main", "native"), first, last line, first slot, slots */
  HEAT_THREAD = 5,     /* width 4: kind, name, parent thread */
  HEAT_VM_STATE = 6,   /* width 4: letter, name */
  HEAT_ZONE = 7,       /* width 4: name */
  HEAT_LINE = 8,       /* width 8: hits [, self ticks, off-CPU ticks [, instructions]] */
  HEAT_TREE = 9,       /* width 4: parent row, call-line slot, function | flag, first slot, via */
  HEAT_TREE_COST = 10, /* width 8: calls, self ticks, off-CPU ticks [, instructions] of the same row of HEAT_TREE */
  HEAT_FRAME = 11,     /* width 4: parent row, function, executing line, zone + 1 */
  HEAT_FRAME_SAMPLES = 12, /* width 8: ticks in each VM state, one column a state */
  HEAT_TIMELINE = 13,      /* width 8, ring: ns since the row before, frame row, heap bytes */
  HEAT_EVENT = 14,         /* width 8, ring: monotonic ns, kind, four values that the kind explains */
  HEAT_NAME = 15,          /* width 4: function, a better name found later; the last one holds */
  HEAT_SOURCE_TEXT = 16,   /* width 1: the text that ran, added when the file is finished; owner = source row */
  HEAT_KINDS = 17
};

/* Flag in the function column of HEAT_TREE: what a reader would have to walk for. */
#define HEAT_INNER_LINE 0x80000000u /* a row above was called from the same line */
#define HEAT_FUNCTION_MASK 0x7fffffffu
#define HEAT_NO_FUNCTION HEAT_FUNCTION_MASK /* the root */

/* A function's run of slots: slot 0 is "no line yet", or all of a native
** function; slot k is line first_line - 1 + k.  A main chunk begins at line 1.
**
** Row 0 of HEAT_TREE is the root, its own parent.  Of every other row:
** 'call-line slot' lies in the run of the *function* of the parent row, also
** where that row has a run of its own; a call from no known line has slot 0 of
** the file.  'via' is the row below which this function stands again: the one
** just under the nearest row above with the same function; 0 = there is none.
** (So parent[via] is that nearest row, and call-line slot[via] the line that
** is at work in it.)  A row with a via that is no native function owns a run
** of slots, 'first slot'; all others name their function's run there. */

_Static_assert(sizeof(HeatChunk) == HEAT_CHUNK_HEADER_BYTES, "chunk header");
_Static_assert(offsetof(HeatHeader, control) == 64, "control word has its own cache line");
_Static_assert(offsetof(HeatHeader, state) == 128, "state word has its own cache line");
_Static_assert(offsetof(HeatHeader, first_monotonic_ns) == 192, "clocks");
_Static_assert(offsetof(HeatHeader, start_cpu_ns) == 256, "totals");
_Static_assert(offsetof(HeatHeader, lost_ticks) == 320, "losses");
_Static_assert(offsetof(HeatHeader, note) == 448, "note");

#endif
