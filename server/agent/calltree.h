/* The call tree of a tracer.
**
** A row says: this function, called from that line of that row.
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

#include "functions.h"

#include <stdbool.h>
#include <stdint.h>

#define CALLTREE_MOST_ROWS (1u << 18)
#define CALLTREE_MOST_CUT_ROWS (1u << 16)
#define CALLTREE_MOST_DEPTH 250u   /* deeper rows are cut rows */
#define CALLTREE_MOST_RECURSION 8u /* so often may a function stand on one path; deeper calls fold into its last row */

/* Cells of a row in HEAT_TREE_COST. */
enum { COST_CALLS = 0, COST_SELF = 1, COST_OFF_CPU = 2, COST_INSTRUCTIONS = 3 };

typedef struct Node Node;
typedef struct Arena Arena;

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

typedef struct Edge {
  Node *parent;
  uint64_t *slot;
  const void *key;
  uint64_t guard;
  Node *child;
} Edge;

typedef struct CallTree {
  HeatFile *file;
  Functions *functions;
  Edge *edges; /* open addressing; child == NULL: free */
  uint64_t edge_mask, edge_count;
  Node *root;
  Arena *arenas; /* where nodes live; the newest has room */
  uint32_t rows, cut_rows;
  Node *nowhere;    /* when there is no memory for a row: everything, uncounted */
  uint16_t columns; /* cells in a slot */
} CallTree;

bool calltree_open(CallTree *tree, Functions *functions); /* false: out of memory or disk */
void calltree_close(CallTree *tree);

static inline uint64_t calltree_edge_hash(const Node *parent, const uint64_t *slot, const void *key)
{
  return functions_mix(((uint64_t)(uintptr_t)parent >> 4) + ((uint64_t)(uintptr_t)slot << 12)
                       + ((uint64_t)(uintptr_t)key << 20));
}

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
