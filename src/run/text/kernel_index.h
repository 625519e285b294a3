/* Common to gather and scatter. */
#ifndef SF_RUN_TEXT_KERNEL_INDEX_H
#define SF_RUN_TEXT_KERNEL_INDEX_H

#include "op/indexing.h"
#include "run/text/library_kernel.h"

/* Declares s0, s1, ...: where the window of windowed index w0, w1, ... begins. */
void sf_put_window_starts(sf_calling *c, const sf_indexing *ix, int indices);

#endif
