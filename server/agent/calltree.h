/* Functions, their line slots, and the call tree.
**
** A row of the tree says: this function, called from that line of that row.
** It knows nothing of a runtime: functions come as an opaque key (a
** prototype's address, say) with a guard that changes when the key's memory
** is used for something else.
**
**   row ──(call line, key)──▶ row      the edge taken last is kept in the row
**    │                                 itself, all others in one hash table
**    ├─ cost   cells in HEAT_TREE_COST: calls, self ticks, off-CPU ticks
**    └─ slots  cells in HEAT_LINE: a run, one slot a line
**
** Rows and slots lie in the heat file; the private side kept here is what the
** hot path compares and follows, and is bounded.  Recursion beyond a limit
** folds into the innermost row of its function.  A call deeper than the tree
** goes gets a cut row: it is not in the file, its self time is its caller's,
** its lines are its function's, and its calls are the hits of slot 0.  When
** even those are used up, all further paths to a function share one such row,
** whose self time is the root's. */
#ifndef CALLTREE_H
#define CALLTREE_H

#include "heatfile.h"

#include <stdbool.h>
#include <stdint.h>

#define CALLTREE_MOST_ROWS (1u << 18)
#define CALLTREE_MOST_CUT_ROWS (1u << 16)
#define CALLTREE_MOST_FUNCTIONS (1u << 17)
#define CALLTREE_MOST_DEPTH 250u   /* deeper rows are cut rows */
#define CALLTREE_MOST_RECURSION 8u /* so often may a function stand on one path; deeper calls fold into its last row */

/* Cells of a slot in HEAT_LINE, and of a row in HEAT_TREE_COST. */
enum { SLOT_HITS = 0, SLOT_SELF = 1, SLOT_OFF_CPU = 2, SLOT_INSTRUCTIONS = 3 };
enum { COST_CALLS = 0, COST_SELF = 1, COST_OFF_CPU = 2, COST_INSTRUCTIONS = 3 };

typedef struct Node Node;

typedef struct Function {
  uint64_t *slots;      /* its run in HEAT_LINE; [0] no line yet, [k] line first_line - 1 + k */
  uint64_t first_slot;  /* row of slots in HEAT_LINE */
  uint64_t identity;    /* hash of source, lines and shape: the same for every copy of one function */
  uint32_t line_before; /* line k has slot k - line_before */
  uint32_t slot_count;
  uint32_t row;    /* in HEAT_FUNCTION */
  uint32_t keys;   /* how many keys have led here: more than one after a reload */
  Node *beyond;    /* stands for all its rows beyond every limit; NULL: none yet */
  uint64_t source; /* opaque number of its source, for the runtime's own use */
  uint64_t epoch;  /* when its key was last known to be its own; only where transient */
  bool native;     /* has no lines */
  bool transient;  /* its text came from no file: keys are verified, see 'epoch' */
} Function;

struct Node {
  const void *last_key; /* the edge taken last: callee, … */
  uint64_t *last_slot;  /* … call line, … */
  uint64_t last_guard;  /* … the callee's guard, … */
  Node *last_child;     /* … and where it led */
  uint64_t *cost;       /* cells in HEAT_TREE_COST; of a cut row: its caller's */
  uint64_t *calls;      /* cost[COST_CALLS]; of a cut row: the hits of slot 0 of its function */
  uint64_t *slots;      /* its function's run, or its own where the function stands above already */
  Function *function;   /* NULL: the root */
  uint32_t line_before; /* as in Function */
  uint32_t slot_count;
  Node *parent;
  Node *first_child;
  Node *next_sibling;
  uint64_t *call_line; /* slot it was called from, in the calling function's own run */
  uint32_t row;
  uint16_t depth;
  uint8_t recursion; /* rows above with the same function */
  bool native;       /* the function is */
};

typedef struct KeyEntry {
  const void *key;
  uint64_t guard;
  Function *function;
} KeyEntry;
typedef struct Edge {
  Node *parent;
  uint64_t *slot;
  const void *key;
  uint64_t guard;
  Node *child;
} Edge;

typedef struct CallTree {
  HeatFile *file;
  Edge *edges; /* open addressing; child == NULL: free */
  uint64_t edge_mask, edge_count;
  KeyEntry *keys; /* open addressing; key == NULL: free */
  uint64_t key_mask, key_count;
  Function **identities; /* open addressing by Function.identity */
  uint64_t identity_mask, identity_count;
  Node *root;
  Node *arena; /* nodes are given out from here … */
  uint32_t arena_left;
  uint32_t rows, cut_rows;
  Function *anonymous; /* stands for all functions beyond the limit */
  Node *nowhere;       /* when there is no memory for a row: everything, uncounted */
  uint64_t *no_line;   /* slot 0 of the file: time that belongs to no function */
  uint16_t columns;    /* cells in a slot */
} CallTree;

/* What a runtime tells of a function that is seen for the first time. */
typedef struct FunctionFacts {
  const char *name;
  const char *kind; /* "lua", "main", "native" */
  uint32_t source_row;
  uint32_t first_line; /* 0 for a main chunk or native function */
  uint32_t last_line;  /* last line that can be hit */
  uint64_t identity;
  uint64_t source;
  bool native;
  bool transient;
} FunctionFacts;

bool calltree_open(CallTree *tree, HeatFile *file); /* false: out of memory or disk */
void calltree_close(CallTree *tree);

static inline uint64_t calltree_mix(uint64_t x)
{
  x *= 0x9E3779B97F4A7C15ull;
  return x ^ x >> 32;
}

static inline uint64_t calltree_edge_hash(const Node *parent, const uint64_t *slot, const void *key)
{
  return calltree_mix(((uint64_t)(uintptr_t)parent >> 4) + ((uint64_t)(uintptr_t)slot << 12)
                      + ((uint64_t)(uintptr_t)key << 20));
}

/* The function last known under 'key', whatever its guard; NULL: none. */
static inline KeyEntry *calltree_find_key(const CallTree *tree, const void *key)
{
  uint64_t at = calltree_mix((uint64_t)(uintptr_t)key) & tree->key_mask;
  for (KeyEntry *entry; (entry = tree->keys + at)->key; at = (at + 1) & tree->key_mask)
    if (entry->key == key) return entry;
  return NULL;
}

/* The function that is the same as these facts say, or a new one, now known under 'key'. */
Function *calltree_define(CallTree *tree, const void *key, uint64_t guard, const FunctionFacts *facts);
/* The row for a call of 'function' from edge->slot of edge->parent, made if need be;
** remembered under edge->key and guard.  edge->child is not looked at. */
Node *calltree_enter(CallTree *tree, const Edge *edge, Function *function);
/* Forgets every edge kept in a row: some key may now mean another function. */
void calltree_forget_last_edges(CallTree *tree);

/* The slot of the calling function's own run that 'slot' of a row stands for. */
static inline uint64_t *calltree_own_slot(const CallTree *tree, const Node *node, uint64_t *slot)
{
  if (!node->function || slot < node->slots) return slot;
  uint64_t offset = (uint64_t)(slot - node->slots);
  return offset < (uint64_t)node->slot_count * tree->columns ? node->function->slots + offset : slot;
}

#endif
