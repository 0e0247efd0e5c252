#include "calltree.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_TABLE_SIZE 1024u
#define ARENA_NODES 256u

struct Arena {
  Arena *next;
  uint32_t used;
  Node nodes[ARENA_NODES];
};

/* ---- Edges ----------------------------------------------------------------
**
** Open addressing, as in functions.c. */

static bool wants_room(uint64_t count, uint64_t mask)
{
  return 2 * count >= mask;
}
static bool has_room(uint64_t count, uint64_t mask)
{
  return count + 1 < mask;
}

static Edge *edge_place(Edge *edges, uint64_t mask, const Edge *wanted)
{
  uint64_t at = calltree_edge_hash(wanted->parent, wanted->slot, wanted->key) & mask;
  while (edges[at].child
         && !(edges[at].key == wanted->key && edges[at].slot == wanted->slot && edges[at].parent == wanted->parent))
    at = (at + 1) & mask;
  return edges + at;
}

static void grow_edges(CallTree *tree)
{
  uint64_t mask = tree->edge_mask * 2 + 1;
  Edge *edges = calloc(mask + 1, sizeof *edges);
  if (!edges) return;
  for (uint64_t i = 0; i <= tree->edge_mask; i++)
    if (tree->edges[i].child) *edge_place(edges, mask, tree->edges + i) = tree->edges[i];
  free(tree->edges);
  tree->edges = edges;
  tree->edge_mask = mask;
}

static void remember_edge(CallTree *tree, const Edge *edge)
{
  if (wants_room(tree->edge_count, tree->edge_mask) && tree->edge_count < 2 * CALLTREE_MOST_ROWS) grow_edges(tree);
  Edge *place = edge_place(tree->edges, tree->edge_mask, edge);
  if (!place->child) {
    if (!has_room(tree->edge_count, tree->edge_mask)) return;
    tree->edge_count++;
  }
  *place = *edge;
}

/* ---- Rows ----------------------------------------------------------------- */

static Node *take_node(CallTree *tree)
{
  if (!tree->arenas || tree->arenas->used == ARENA_NODES) {
    Arena *arena = calloc(1, sizeof *arena); /* rows are never given back one by one */
    if (!arena) return NULL;
    arena->next = tree->arenas;
    tree->arenas = arena;
  }
  return tree->arenas->nodes + tree->arenas->used++;
}

/* A function that stands on its path already gets a run of slots of its own,
** so that a reader can tell self time in an outer activation from inner ones. */
static uint64_t give_run(CallTree *tree, Node *node)
{
  Function *f = node->function;
  uint64_t first = f->first_slot;
  node->slots = f->slots;
  node->slot_count = f->slot_count;
  node->line_before = f->line_before;
  if (node->recursion == 0 || f->native || f->slots == tree->functions->no_line) return first;
  uint64_t *slots = heatfile_append(tree->file, HEAT_LINE, f->slot_count, &first);
  if (!slots) return f->first_slot;
  heatfile_publish(tree->file, HEAT_LINE, f->slot_count);
  node->slots = slots;
  return first;
}

static bool line_is_active(const Node *parent, const uint64_t *call_line)
{
  for (const Node *a = parent; a->parent; a = a->parent)
    if (a->call_line == call_line) return true;
  return false;
}

/* HEAT_LINE row of a slot: chunks are few, the newest most likely. */
static uint32_t slot_row(const CallTree *tree, const Node *parent, const uint64_t *own_slot)
{
  const Function *f = parent->function;
  if (!f || f->slots == tree->functions->no_line || own_slot < f->slots) return 0;
  uint64_t offset = (uint64_t)(own_slot - f->slots) / tree->columns;
  return offset < f->slot_count ? (uint32_t)(f->first_slot + offset) : 0;
}

static bool publish_row(CallTree *tree, Node *node, const Node *via)
{
  uint64_t row, cost_row;
  HeatFile *file = tree->file;
  uint64_t first_slot = node->function ? give_run(tree, node) : 0;
  uint64_t *cost = heatfile_append(file, HEAT_TREE_COST, 1, &cost_row);
  uint32_t *cells = cost ? heatfile_append(file, HEAT_TREE, 1, &row) : NULL;
  if (!cells) return false;
  const Node *parent = node->parent;
  uint32_t function = node->function ? node->function->row : HEAT_NO_FUNCTION;
  cells[0] = parent ? parent->row : 0;
  cells[1] = parent ? slot_row(tree, parent, node->call_line) : 0;
  cells[2] = parent && line_is_active(parent, node->call_line) ? function | HEAT_INNER_LINE : function;
  cells[3] = (uint32_t)first_slot;
  cells[4] = via ? via->row : 0;
  node->cost = cost;
  node->calls = cost + COST_CALLS;
  node->row = (uint32_t)row;
  heatfile_publish(file, HEAT_TREE_COST, 1);
  heatfile_publish(file, HEAT_TREE, 1);
  tree->rows++;
  return true;
}

static Node *new_row(CallTree *tree, Node *parent, uint64_t *slot, Function *function)
{
  if (tree->rows >= CALLTREE_MOST_ROWS || parent->depth >= CALLTREE_MOST_DEPTH) return NULL;
  Node *node = take_node(tree), *via = node;
  if (!node) return NULL;
  node->function = function;
  node->native = function->native;
  node->parent = parent;
  node->depth = (uint16_t)(parent->depth + 1);
  node->call_line = calltree_own_slot(tree, parent, slot);
  for (Node *a = parent; a; via = a, a = a->parent)
    if (a->function == function) {
      node->recursion = (uint8_t)(a->recursion + 1);
      break;
    }
  /* The row just under the outer one may be this row itself: its number is the next. */
  if (node->recursion > 0 && via == node) node->row = tree->rows;
  if (!publish_row(tree, node, node->recursion > 0 ? via : NULL)) return NULL;
  node->next_sibling = parent->first_child;
  parent->first_child = node;
  return node;
}

/* A row of our own alone: see the header.  Below an outer activation of its
** function it uses that one's slots, so that no line counts twice. */
static Node *private_row(CallTree *tree, Node *parent, Function *function, const Node *outer)
{
  Node *node = take_node(tree);
  if (!node) return NULL;
  node->function = function;
  node->native = function->native;
  node->parent = parent;
  node->depth = parent->depth;
  node->row = parent->row;
  node->cost = parent->cost;
  node->recursion = outer ? (uint8_t)(outer->recursion + 1) : 0;
  node->slots = outer ? outer->slots : function->slots;
  node->calls = node->slots + SLOT_HITS;
  node->slot_count = function->slot_count;
  node->line_before = function->line_before;
  node->call_line = parent->call_line;
  return node;
}

static Node *cut_row(CallTree *tree, Node *parent, Function *function, const Node *outer)
{
  if (tree->cut_rows >= CALLTREE_MOST_CUT_ROWS || parent->depth < CALLTREE_MOST_DEPTH) return NULL;
  tree->cut_rows++;
  return private_row(tree, parent, function, outer);
}

static Node *row_beyond(CallTree *tree, Function *function)
{
  if (!function->beyond) function->beyond = private_row(tree, tree->root, function, NULL);
  return function->beyond ? function->beyond : tree->nowhere;
}

static Node *existing_row(Node *parent, const uint64_t *call_line, const Function *function)
{
  for (Node *c = parent->first_child; c; c = c->next_sibling)
    if (c->function == function && c->call_line == call_line) return c;
  return NULL;
}

static Node *deepest_row_of(Node *from, const Function *function)
{
  while (from && from->function != function) from = from->parent;
  return from;
}

Node *calltree_enter(CallTree *tree, const Edge *edge, Function *function)
{
  Node *parent = edge->parent;
  uint64_t *slot = edge->slot;
  Node *outer = deepest_row_of(parent, function), *child = NULL;
  if (outer && outer->recursion + 1u >= CALLTREE_MOST_RECURSION) {
    tree->file->header->folded_calls++;
    child = outer;
  } else {
    if (function->keys > 1) child = existing_row(parent, calltree_own_slot(tree, parent, slot), function);
    if (!child) child = new_row(tree, parent, slot, function);
    if (!child) tree->file->header->cut_stacks++;
    if (!child) child = cut_row(tree, parent, function, outer);
  }
  if (!child) return row_beyond(tree, function);
  remember_edge(tree, &(Edge){parent, slot, edge->key, edge->guard, child});
  return child;
}

void calltree_forget_last_edges(CallTree *tree)
{
  for (uint64_t i = 0; i <= tree->edge_mask; i++)
    if (tree->edges[i].child) tree->edges[i].parent->last_key = NULL;
}

/* ---- Life ----------------------------------------------------------------- */

static bool make_root(CallTree *tree)
{
  tree->root = take_node(tree);
  if (!tree->root) return false;
  tree->root->slots = tree->functions->no_line;
  tree->root->slot_count = 1;
  return publish_row(tree, tree->root, NULL);
}

bool calltree_open(CallTree *tree, Functions *functions)
{
  memset(tree, 0, sizeof *tree);
  tree->file = functions->file;
  tree->functions = functions;
  tree->columns = tree->file->tables[HEAT_LINE].columns;
  tree->edge_mask = FIRST_TABLE_SIZE - 1;
  tree->edges = calloc(FIRST_TABLE_SIZE, sizeof *tree->edges);
  if (!tree->edges || !make_root(tree)) return false;
  tree->nowhere = private_row(tree, tree->root, functions->anonymous, NULL);
  return tree->nowhere != NULL;
}

void calltree_close(CallTree *tree)
{
  free(tree->edges);
  while (tree->arenas) {
    Arena *arena = tree->arenas;
    tree->arenas = arena->next;
    free(arena);
  }
  memset(tree, 0, sizeof *tree);
}
