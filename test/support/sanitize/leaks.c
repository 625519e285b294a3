/* The leak checker looks only where something may have leaked. Except on x86-64 it walks a table of the whole address space
 * as a process ends, which takes seconds and so longer than most tests. What holds as many bytes in the end as before main
 * has freed all that it took: there it has nothing to look for. */
#include <sanitizer/allocator_interface.h>
#include <sanitizer/lsan_interface.h>
#include <stdio.h>

static size_t before;

/* Before main. The buffer of standard output would be taken at the first word and never given back: it is here. */
__attribute__((constructor)) static void begin(void)
{
    static char out[BUFSIZ];
    setvbuf(stdout, out, _IOLBF, sizeof out);
    before = __sanitizer_get_current_allocated_bytes();
}

/* The leak checker asks this before it looks. */
int __lsan_is_turned_off(void)
{
    return __sanitizer_get_current_allocated_bytes() == before;
}
