/* The emulated GPU: replacements of its libraries. */
#ifndef SF_TEST_EMULATOR_EMULATOR_H
#define SF_TEST_EMULATOR_EMULATOR_H

#include "run/text/text_conv.h"

void sf_host_convolve(const sf_convolve *convolve, char *const *images);

#endif
