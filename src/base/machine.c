#include "base/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* The number in a file that holds one; -1 when it holds "max" or is not there. */
static int64_t number_in(const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    int64_t value;
    if (fscanf(file, "%" SCNd64, &value) != 1)
        value = -1;
    fclose(file);
    return value;
}

static int64_t available_bytes(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    int64_t kilobytes = -1;
    char line[256];
    while (file && kilobytes < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %" SCNd64, &kilobytes) != 1)
            kilobytes = -1;
    if (file)
        fclose(file);
    if (kilobytes >= 0 && kilobytes <= INT64_MAX / 1024)
        return kilobytes * 1024;
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 && pages <= INT64_MAX / size ? (int64_t)pages * size : 0;
}

int64_t sf_machine_memory(void)
{
    int64_t bytes = available_bytes();
    int64_t limit = number_in("/sys/fs/cgroup/memory.max");
    int64_t used = number_in("/sys/fs/cgroup/memory.current");
    if (limit >= 0 && used >= 0) {
        int64_t left = limit > used ? limit - used : 0;
        if (bytes == 0 || left < bytes)
            bytes = left;
    }
    return bytes;
}

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double sf_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double sf_thread_time(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
