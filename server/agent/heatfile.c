#define _GNU_SOURCE
#include "heatfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES 4096u
#define TEXT_CHUNK_ROWS (65536u - HEAT_CHUNK_HEADER_BYTES)
#define DEFINITION_CHUNK_ROWS 2048u
#define COUNTER_CHUNK_ROWS 8192u

/* ---- Tables --------------------------------------------------------------- */

static uint16_t cell_width(uint32_t kind)
{
  switch (kind) {
  case HEAT_TEXT:
  case HEAT_SOURCE_TEXT: return 1;
  case HEAT_LINE:
  case HEAT_TREE_COST:
  case HEAT_FRAME_SAMPLES:
  case HEAT_TIMELINE:
  case HEAT_EVENT: return 8;
  default: return 4;
  }
}

static const uint16_t fixed_columns[HEAT_KINDS] = {
    [HEAT_TEXT] = 1, [HEAT_STRING] = 2, [HEAT_SOURCE] = 5, [HEAT_FUNCTION] = 7, [HEAT_THREAD] = 3, [HEAT_VM_STATE] = 2,
    [HEAT_ZONE] = 1, [HEAT_TREE] = 5,   [HEAT_FRAME] = 4,  [HEAT_TIMELINE] = 3, [HEAT_EVENT] = 6,  [HEAT_NAME] = 2,
};

static uint32_t usual_capacity(uint32_t kind)
{
  switch (kind) {
  case HEAT_TEXT: return TEXT_CHUNK_ROWS;
  case HEAT_LINE:
  case HEAT_TREE:
  case HEAT_TREE_COST: return COUNTER_CHUNK_ROWS;
  default: return DEFINITION_CHUNK_ROWS;
  }
}

static bool add_chunk(HeatFile *file, uint32_t kind, uint32_t capacity)
{
  HeatTable *table = &file->tables[kind];
  uint16_t width = cell_width(kind);
  uint64_t bytes = HEAT_CHUNK_HEADER_BYTES + (uint64_t)capacity * table->columns * width;
  bytes = (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
  HeatChunk *chunk = file->full ? NULL : mapping_grow(&file->mapping, bytes);
  if (!chunk) {
    file->full = true;
    return false;
  }
  chunk->bytes = bytes;
  chunk->first_row = table->next_first;
  chunk->capacity = capacity;
  chunk->columns = table->columns;
  chunk->width = width;
  __atomic_store_n(&chunk->kind, kind, __ATOMIC_RELEASE);
  __atomic_store_n(&file->header->file_bytes, file->mapping.bytes, __ATOMIC_RELEASE);
  table->chunk = chunk;
  table->next_first += capacity;
  return true;
}

void *heatfile_append(HeatFile *file, uint32_t kind, uint32_t rows, uint64_t *first)
{
  HeatTable *table = &file->tables[kind];
  if (!table->chunk || table->chunk->capacity - table->chunk->count < rows) {
    uint32_t usual = usual_capacity(kind);
    if (!add_chunk(file, kind, rows > usual ? rows : usual)) {
      file->header->full_tables++;
      return NULL;
    }
  }
  HeatChunk *chunk = table->chunk;
  *first = chunk->first_row + chunk->count;
  return (char *)chunk + HEAT_CHUNK_HEADER_BYTES + chunk->count * chunk->columns * chunk->width;
}

void heatfile_publish(HeatFile *file, uint32_t kind, uint32_t rows)
{
  HeatChunk *chunk = file->tables[kind].chunk;
  __atomic_store_n(&chunk->count, chunk->count + rows, __ATOMIC_RELEASE);
}

uint32_t heatfile_row32(HeatFile *file, uint32_t kind, const uint32_t *cells)
{
  uint64_t row;
  void *to = heatfile_append(file, kind, 1, &row);
  if (!to) return 0;
  memcpy(to, cells, sizeof *cells * file->tables[kind].columns);
  heatfile_publish(file, kind, 1);
  return (uint32_t)row;
}

uint32_t heatfile_string(HeatFile *file, const char *text, size_t length)
{
  uint64_t offset;
  if (length > TEXT_CHUNK_ROWS) length = TEXT_CHUNK_ROWS;
  if (length == 0) return 0;
  char *to = heatfile_append(file, HEAT_TEXT, (uint32_t)length, &offset);
  if (!to) return 0;
  memcpy(to, text, length);
  heatfile_publish(file, HEAT_TEXT, (uint32_t)length);
  return heatfile_row32(file, HEAT_STRING, (uint32_t[]){(uint32_t)offset, (uint32_t)length});
}

/* ---- Header --------------------------------------------------------------- */

static void copy_name(char *to, size_t size, const char *from)
{
  size_t n = strlen(from);
  if (n >= size) n = size - 1;
  memcpy(to, from, n);
  memset(to + n, 0, size - n);
}

bool heatfile_open(HeatFile *file, const HeatSettings *settings)
{
  memset(file, 0, sizeof *file);
  if (!mapping_open(&file->mapping, settings->path)) return false;
  HeatHeader *h = mapping_grow(&file->mapping, HEAT_HEADER_BYTES);
  if (!h) {
    int error = errno;
    mapping_close(&file->mapping);
    if (settings->path) unlink(settings->path);
    errno = error;
    return false;
  }
  copy_name(file->path, sizeof file->path, settings->path ? settings->path : "");
  memcpy(file->tables, (HeatTable[HEAT_KINDS]){{0}}, sizeof file->tables);
  for (uint32_t kind = 1; kind < HEAT_KINDS; kind++) file->tables[kind].columns = fixed_columns[kind];
  file->tables[HEAT_LINE].columns = settings->line_columns;
  file->tables[HEAT_TREE_COST].columns = settings->line_columns < 3 ? 3 : settings->line_columns;
  file->tables[HEAT_FRAME_SAMPLES].columns = settings->vm_states;
  file->header = h;
  h->version = HEAT_VERSION;
  h->header_bytes = HEAT_HEADER_BYTES;
  h->pid = (uint32_t)getpid();
  h->recording = 1;
  h->file_bytes = HEAT_HEADER_BYTES;
  copy_name(h->mode, sizeof h->mode, settings->mode);
  copy_name(h->runtime, sizeof h->runtime, settings->runtime);
  heatfile_row32(file, HEAT_STRING, (uint32_t[]){0, 0});
  memcpy(h->magic, HEAT_MAGIC, sizeof h->magic);
  return true;
}

void heatfile_close(HeatFile *file)
{
  mapping_close(&file->mapping);
  file->header = NULL;
}

void heatfile_set_state(HeatFile *file, uint32_t state)
{
  __atomic_store_n(&file->header->state, state, __ATOMIC_RELEASE);
}

void heatfile_set_note(HeatFile *file, const char *note)
{
  copy_name(file->header->note, sizeof file->header->note, note);
}

void heatfile_stamp_clock(HeatFile *file, ClockKind kind)
{
  HeatHeader *h = file->header;
  h->now_ticks = clock_ticks(kind);
  h->now_monotonic_ns = clock_monotonic_ns();
  if (h->first_ticks == 0) {
    h->first_ticks = h->now_ticks;
    h->first_monotonic_ns = h->now_monotonic_ns;
  }
}

void heatfile_begin(HeatFile *file)
{
  HeatHeader *h = file->header;
  h->start_wall_ns = clock_wall_ns();
  h->start_monotonic_ns = clock_monotonic_ns();
  h->start_cpu_ns = clock_thread_cpu_ns();
  heatfile_set_state(file, HEAT_RECORDING);
}

void heatfile_end(HeatFile *file, ClockKind kind)
{
  HeatHeader *h = file->header;
  if (h->start_monotonic_ns != 0) {
    h->now_cpu_ns = clock_thread_cpu_ns();
    h->stop_monotonic_ns = clock_monotonic_ns();
    heatfile_stamp_clock(file, kind);
  }
  heatfile_set_state(file, HEAT_STOPPED);
}

/* ---- Fork ----------------------------------------------------------------- */

static void clear_counts(HeatFile *file)
{
  char *at = file->mapping.base + HEAT_HEADER_BYTES, *end = file->mapping.base + file->mapping.bytes;
  for (HeatChunk *chunk; at < end; at += chunk->bytes) {
    chunk = (HeatChunk *)(void *)at;
    if (chunk->kind == HEAT_LINE || chunk->kind == HEAT_TREE_COST || chunk->kind == HEAT_FRAME_SAMPLES)
      memset(chunk + 1, 0, chunk->bytes - sizeof *chunk);
    if (chunk->kind == HEAT_TIMELINE || chunk->kind == HEAT_EVENT) chunk->count = 0;
  }
}

static void clear_totals(HeatHeader *h)
{
  size_t from = offsetof(HeatHeader, start_cpu_ns), to = offsetof(HeatHeader, note);
  uint64_t interval = h->requested_interval_ns, line = h->line_event_ticks_x16, call = h->call_event_ticks_x16;
  memset((char *)h + from, 0, to - from);
  h->requested_interval_ns = interval;
  h->line_event_ticks_x16 = line;
  h->call_event_ticks_x16 = call;
  h->pid = (uint32_t)getpid();
  h->start_wall_ns = clock_wall_ns();
  h->start_monotonic_ns = clock_monotonic_ns();
}

/* STEM.heat → STEM.PID.heat; a name without the ending gets both. */
static bool child_path(char *to, size_t size, const char *path)
{
  size_t n = strlen(path);
  if (n > 5 && strcmp(path + n - 5, ".heat") == 0) n -= 5;
  return (size_t)snprintf(to, size, "%.*s.%ld.heat", (int)n, path, (long)getpid()) < size;
}

bool heatfile_fork(HeatFile *file)
{
  char path[HEATFILE_PATH_BYTES];
  if (!child_path(path, sizeof path, file->path) || !mapping_move_to(&file->mapping, path)) {
    unlink(path);
    mapping_detach(&file->mapping); /* our writes must not reach the parent's file */
    file->full = true;
    return false;
  }
  copy_name(file->path, sizeof file->path, path);
  clear_totals(file->header);
  clear_counts(file);
  return true;
}
