/* Numbers by text. */
#ifndef SF_REPORT_TEXT_INDEX_H
#define SF_REPORT_TEXT_INDEX_H

#include "base/intern.h"

/* A zeroed one is empty. It lives in the arena that is passed; texts are borrowed. */
typedef struct sf_index {
    sf_interner texts;
} sf_index;

/* Of two numbers of one text the first counts. */
void sf_index_add(sf_index *index, sf_arena *arena, const char *text, uint32_t number);
uint32_t sf_index_find(const sf_index *index, const char *text, uint32_t otherwise);

#endif
