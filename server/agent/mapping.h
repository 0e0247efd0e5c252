/* A file that is mapped, shared, and grows: what has been mapped never moves. */
#ifndef MAPPING_H
#define MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAPPING_MOST_BYTES (64ull << 30)  /* address space only; reserved, not used */
#define MAPPING_LEAST_BYTES (16ull << 20) /* below this a recording is not worth starting */

typedef struct Mapping {
  char *base;        /* start of the reserved range; the file's byte 0 */
  uint64_t bytes;    /* mapped so far: the file's length */
  uint64_t reserved; /* bytes of address space */
  int fd;            /* the file, closed on exec; -1 = none */
} Mapping;

bool mapping_open(Mapping *m, const char *path);    /* NULL: a file without a name; false: errno says why */
void *mapping_grow(Mapping *m, uint64_t bytes);     /* page multiple; NULL: errno says why, nothing changed */
bool mapping_move_to(Mapping *m, const char *path); /* after fork: a copy of our own in place of the parent's file */
void mapping_detach(Mapping *m); /* after fork, when there is no room for a copy: private, empty memory */
void mapping_close(Mapping *m);
bool memory_read(const void *from, void *to, size_t bytes); /* of this process; false instead of a fault */
bool mapping_pin_library(const void *symbol);               /* the library that holds symbol is never unloaded */

#endif
