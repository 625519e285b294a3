#include "support/emulate.h"

#include <stdlib.h>

void test_emulate_gpu(void)
{
    setenv("SHEAF_CUDA", SF_EMULATOR, 0);
}
