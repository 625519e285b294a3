#include "run/gemm/gemm_epilogue.h"

typedef struct whole {
    const sf_epilogue *epilogue;
    int64_t columns;
} whole;

static void do_epilogue_rows(void *context, int part, int64_t first, int64_t end)
{
    const whole *w = context;
    sf_epilogue_run(w->epilogue, part, first, end - first, 0, w->columns);
}

void sf_epilogue_run_all(const sf_epilogue *epilogue, int64_t rows, int64_t columns,
                         sf_threads *threads)
{
    enum { WORTH_A_THREAD = 1 << 14 }; /* elements */
    whole w = {epilogue, columns};
    int64_t grain = 1 + WORTH_A_THREAD / (columns + 1);
    if (rows > 0 && columns > 0)
        sf_threads_run(threads, rows, grain, do_epilogue_rows, &w);
}
