/* Functions: what was called or seen, each defined in the heat file once.
**
** It knows nothing of a runtime: functions come as an opaque key (a
** prototype's address, say) with a guard that changes when the key's memory
** is used for something else, and with an identity that all copies of one
** function share.  Where lines are counted, each gets a run of slots. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include "heatfile.h"

#include <stdbool.h>
#include <stdint.h>

#define FUNCTIONS_MOST (1u << 17)

/* Cells of a slot in HEAT_LINE. */
enum { SLOT_HITS = 0, SLOT_SELF = 1, SLOT_OFF_CPU = 2, SLOT_INSTRUCTIONS = 3 };

typedef struct Function {
  uint64_t *slots;      /* its run in HEAT_LINE; [0] no line yet, [k] line first_line - 1 + k */
  uint64_t first_slot;  /* row of slots in HEAT_LINE */
  uint64_t identity;    /* hash of source, lines and shape: the same for every copy of one function */
  uint32_t line_before; /* line k has slot k - line_before */
  uint32_t slot_count;
  uint32_t row;        /* in HEAT_FUNCTION */
  uint32_t keys;       /* how many keys have led here: more than one after a reload */
  struct Node *beyond; /* call tree: stands for all its rows beyond every limit; NULL: none yet */
  uint64_t epoch;      /* when its key was last known to be its own; only where transient */
  bool native;         /* has no lines */
  bool transient;      /* its text came from no file: keys are verified, see 'epoch' */
} Function;

typedef struct KeyEntry {
  const void *key;
  uint64_t guard;
  Function *function;
} KeyEntry;

typedef struct Functions {
  HeatFile *file;
  KeyEntry *keys; /* open addressing; key == NULL: free */
  uint64_t key_mask, key_count;
  Function **identities; /* open addressing by Function.identity */
  uint64_t identity_mask, identity_count;
  Function *anonymous; /* stands for all functions beyond the limit */
  uint64_t *no_line;   /* slot 0 of the file: time that belongs to no function; NULL: lines are not counted */
} Functions;

/* What a runtime tells of a function that is seen for the first time. */
typedef struct FunctionFacts {
  const char *name;
  const char *kind; /* "lua", "main", "native" */
  uint32_t source_row;
  uint32_t first_line; /* 0 for a main chunk or native function */
  uint32_t last_line;  /* last line that can be hit */
  uint64_t identity;
  bool native;
  bool transient;
} FunctionFacts;

bool functions_open(Functions *functions, HeatFile *file); /* false: out of memory or disk */
void functions_close(Functions *functions);

/* The function that is the same as these facts say, or a new one, now known under 'key'. */
Function *functions_define(Functions *functions, const void *key, uint64_t guard, const FunctionFacts *facts);

static inline uint64_t functions_mix(uint64_t x)
{
  x *= 0x9E3779B97F4A7C15ull;
  return x ^ x >> 32;
}

/* The function last known under 'key', whatever its guard; NULL: none. */
static inline KeyEntry *functions_find_key(const Functions *functions, const void *key)
{
  uint64_t at = functions_mix((uint64_t)(uintptr_t)key) & functions->key_mask;
  for (KeyEntry *entry; (entry = functions->keys + at)->key; at = (at + 1) & functions->key_mask)
    if (entry->key == key) return entry;
  return NULL;
}

#endif
