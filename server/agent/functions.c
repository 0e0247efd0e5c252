#include "functions.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_TABLE_SIZE 1024u

/* ---- Hash tables ----------------------------------------------------------
**
** Open addressing, a power of two in size, at most half full.  A table that
** cannot grow stays as it is until it is nearly full; then nothing more is
** entered, and callers take their fallback. */

static bool wants_room(uint64_t count, uint64_t mask)
{
  return 2 * count >= mask;
}

static bool has_room(uint64_t count, uint64_t mask)
{
  return count + 1 < mask;
}

static KeyEntry *key_place(KeyEntry *keys, uint64_t mask, const void *key)
{
  uint64_t at = functions_mix((uint64_t)(uintptr_t)key) & mask;
  while (keys[at].key && keys[at].key != key) at = (at + 1) & mask;
  return keys + at;
}

static void grow_keys(Functions *functions)
{
  uint64_t mask = functions->key_mask * 2 + 1;
  KeyEntry *keys = calloc(mask + 1, sizeof *keys);
  if (!keys) return;
  for (uint64_t i = 0; i <= functions->key_mask; i++)
    if (functions->keys[i].key) *key_place(keys, mask, functions->keys[i].key) = functions->keys[i];
  free(functions->keys);
  functions->keys = keys;
  functions->key_mask = mask;
}

/* Keys of dead functions stay until the table is full; then it starts again,
** and functions still alive are found by their identity. */
static void remember_key(Functions *functions, const void *key, uint64_t guard, Function *function)
{
  if (wants_room(functions->key_count, functions->key_mask)) {
    if (functions->key_count < 2 * FUNCTIONS_MOST) {
      grow_keys(functions);
    } else {
      memset(functions->keys, 0, (functions->key_mask + 1) * sizeof *functions->keys);
      functions->key_count = 0;
    }
  }
  KeyEntry *entry = key_place(functions->keys, functions->key_mask, key);
  if (!entry->key) {
    if (!has_room(functions->key_count, functions->key_mask)) return;
    functions->key_count++;
  }
  *entry = (KeyEntry){key, guard, function};
}

static Function **identity_place(Function **identities, uint64_t mask, uint64_t identity)
{
  uint64_t at = functions_mix(identity) & mask;
  while (identities[at] && identities[at]->identity != identity) at = (at + 1) & mask;
  return identities + at;
}

static void grow_identities(Functions *functions)
{
  uint64_t mask = functions->identity_mask * 2 + 1;
  Function **identities = calloc(mask + 1, sizeof(Function *));
  if (!identities) return;
  for (uint64_t i = 0; i <= functions->identity_mask; i++)
    if (functions->identities[i])
      *identity_place(identities, mask, functions->identities[i]->identity) = functions->identities[i];
  free((void *)functions->identities);
  functions->identities = identities;
  functions->identity_mask = mask;
}

/* ---- Functions ------------------------------------------------------------ */

static void give_slots(Functions *functions, Function *function, uint32_t count)
{
  uint64_t first;
  if (!functions->no_line) return;
  uint64_t *slots = heatfile_append(functions->file, HEAT_LINE, count, &first);
  if (slots) heatfile_publish(functions->file, HEAT_LINE, count);
  function->slots = slots ? slots : functions->no_line;
  function->first_slot = slots ? first : 0;
  function->slot_count = slots ? count : 1;
}

static Function *new_function(Functions *functions, const FunctionFacts *facts)
{
  Function *f = calloc(1, sizeof *f);
  if (!f) return functions->anonymous;
  uint32_t first = facts->native ? 0 : (facts->first_line ? facts->first_line : 1);
  uint32_t last = facts->last_line > first ? facts->last_line : first;
  f->native = facts->native;
  f->transient = facts->transient;
  f->identity = facts->identity;
  f->line_before = first - 1;
  give_slots(functions, f, facts->native ? 1 : last - first + 2);
  HeatFile *file = functions->file;
  f->row = heatfile_row32(file, HEAT_FUNCTION,
                          (uint32_t[]){facts->source_row, heatfile_string(file, facts->name, strlen(facts->name)),
                                       heatfile_string(file, facts->kind, strlen(facts->kind)), first,
                                       facts->native ? 0 : last, (uint32_t)f->first_slot, f->slot_count});
  return f;
}

Function *functions_define(Functions *functions, const void *key, uint64_t guard, const FunctionFacts *facts)
{
  if (wants_room(functions->identity_count, functions->identity_mask)) grow_identities(functions);
  Function **place = identity_place(functions->identities, functions->identity_mask, facts->identity);
  Function *f = *place;
  if (!f) {
    bool room = functions->identity_count < FUNCTIONS_MOST
                && has_room(functions->identity_count, functions->identity_mask);
    f = room ? new_function(functions, facts) : functions->anonymous;
    if (!room) functions->file->header->full_tables++;
    if (f != functions->anonymous) {
      *place = f;
      functions->identity_count++;
    }
  }
  f->keys++;
  remember_key(functions, key, guard, f);
  return f;
}

/* ---- Life ----------------------------------------------------------------- */

static bool make_no_line(Functions *functions)
{
  uint64_t first;
  if (functions->file->tables[HEAT_LINE].columns == 0) return true;
  functions->no_line = heatfile_append(functions->file, HEAT_LINE, 1, &first);
  if (functions->no_line) heatfile_publish(functions->file, HEAT_LINE, 1);
  return functions->no_line != NULL;
}

bool functions_open(Functions *functions, HeatFile *file)
{
  memset(functions, 0, sizeof *functions);
  functions->file = file;
  functions->key_mask = functions->identity_mask = FIRST_TABLE_SIZE - 1;
  functions->keys = calloc(FIRST_TABLE_SIZE, sizeof *functions->keys);
  functions->identities = calloc(FIRST_TABLE_SIZE, sizeof(Function *));
  if (!functions->keys || !functions->identities || !make_no_line(functions)) return false;
  uint32_t nowhere = heatfile_string(file, "native", strlen("native"));
  heatfile_row32(file, HEAT_SOURCE, (uint32_t[]){0, nowhere, 0, 0, 0}); /* row 0: what has no source */
  functions->anonymous = new_function(
      functions, &(FunctionFacts){.name = "(functions beyond the limit)", .kind = "native", .native = true});
  return functions->anonymous != NULL;
}

void functions_close(Functions *functions)
{
  for (uint64_t i = 0; functions->identities && i <= functions->identity_mask; i++) free(functions->identities[i]);
  free(functions->keys);
  free((void *)functions->identities);
  free(functions->anonymous);
  memset(functions, 0, sizeof *functions);
}
