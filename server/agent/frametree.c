#include "frametree.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_TABLE_SIZE 1024u
#define TIMELINE_COLUMNS 3u

static FrameEntry *place(FrameEntry *entries, uint64_t mask, const FrameEntry *wanted)
{
  uint64_t hash = ((uint64_t)wanted->parent << 32 | wanted->function) * 0x9E3779B97F4A7C15ull;
  uint64_t at = ((hash ^ wanted->line) * 0x9E3779B97F4A7C15ull) >> 20 & mask;
  while (entries[at].row
         && !(entries[at].parent == wanted->parent && entries[at].function == wanted->function
              && entries[at].line == wanted->line && entries[at].zone == wanted->zone))
    at = (at + 1) & mask;
  return entries + at;
}

static void grow(FrameTree *tree)
{
  uint64_t mask = tree->mask * 2 + 1;
  FrameEntry *entries = calloc(mask + 1, sizeof *entries);
  if (!entries) return;
  for (uint64_t i = 0; i <= tree->mask; i++)
    if (tree->entries[i].row) *place(entries, mask, tree->entries + i) = tree->entries[i];
  free(tree->entries);
  tree->entries = entries;
  tree->mask = mask;
}

static bool publish_row(FrameTree *tree, FrameEntry *entry)
{
  uint64_t row, samples_row;
  uint64_t *samples = heatfile_append(tree->file, HEAT_FRAME_SAMPLES, 1, &samples_row);
  uint32_t *cells = samples ? heatfile_append(tree->file, HEAT_FRAME, 1, &row) : NULL;
  if (!cells) return false;
  cells[0] = entry->parent;
  cells[1] = entry->function;
  cells[2] = entry->line;
  cells[3] = entry->zone;
  entry->row = (uint32_t)row;
  entry->samples = samples;
  heatfile_publish(tree->file, HEAT_FRAME_SAMPLES, 1);
  heatfile_publish(tree->file, HEAT_FRAME, 1);
  return true;
}

uint32_t frametree_row(FrameTree *tree, uint32_t parent, uint32_t function, uint32_t line, uint64_t **samples)
{
  FrameEntry wanted = {.parent = parent, .function = function, .line = line};
  FrameEntry *entry = place(tree->entries, tree->mask, &wanted);
  if (!entry->row) {
    if (tree->count >= FRAMETREE_MOST_ROWS || tree->count + 1 >= tree->mask || !publish_row(tree, &wanted)) {
      tree->file->header->full_tables++;
      return parent;
    }
    *entry = wanted;
    if (2 * ++tree->count >= tree->mask) {
      grow(tree);
      entry = place(tree->entries, tree->mask, &wanted);
    }
  }
  *samples = entry->samples;
  return entry->row;
}

void frametree_note_sample(FrameTree *tree, uint32_t row, uint64_t heap_bytes, uint64_t now_ns)
{
  HeatChunk *chunk = tree->timeline;
  uint64_t *cells = (uint64_t *)(chunk + 1) + chunk->count % chunk->capacity * TIMELINE_COLUMNS;
  if (chunk->count >= chunk->capacity) tree->file->header->dropped_timeline++;
  cells[0] = now_ns - tree->last_sample_ns;
  cells[1] = row;
  cells[2] = heap_bytes;
  tree->last_sample_ns = now_ns;
  heatfile_publish(tree->file, HEAT_TIMELINE, 1);
}

static bool make_root(FrameTree *tree, uint64_t **samples)
{
  FrameEntry root = {.function = HEAT_NO_FUNCTION};
  bool made = publish_row(tree, &root);
  *samples = root.samples;
  return made;
}

static bool make_timeline(FrameTree *tree)
{
  uint64_t first;
  if (!heatfile_append(tree->file, HEAT_TIMELINE, FRAMETREE_TIMELINE_ROWS, &first)) return false;
  tree->timeline = tree->file->tables[HEAT_TIMELINE].chunk;
  return true;
}

bool frametree_open(FrameTree *tree, HeatFile *file)
{
  uint64_t *samples;
  memset(tree, 0, sizeof *tree);
  tree->file = file;
  tree->mask = FIRST_TABLE_SIZE - 1;
  tree->entries = calloc(FIRST_TABLE_SIZE, sizeof *tree->entries);
  return tree->entries && make_root(tree, &samples) && make_timeline(tree);
}

void frametree_close(FrameTree *tree)
{
  free(tree->entries);
  memset(tree, 0, sizeof *tree);
}
