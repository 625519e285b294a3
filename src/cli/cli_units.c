/* Numbers with units. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* "12.3 k": three digits and a unit. */
static const char *scaled(double value, double base, const char *const *units,
                          char text[SF_CLI_UNITS])
{
    int unit = 0;
    while (fabs(value) >= base && units[unit + 1])
        value /= base, unit++;
    int digits = fabs(value) < 9.995 ? 2 : fabs(value) < 99.95 ? 1 : 0;
    snprintf(text, SF_CLI_UNITS, "%.*f %s", digits, value, units[unit]);
    return text;
}

const char *sf_cli_count(double value, char text[SF_CLI_UNITS])
{
    static const char *const units[] = {"", "k ", "M ", "G ", "T ", NULL};
    return scaled(value, 1000, units, text);
}

const char *sf_cli_flops(double value, char text[SF_CLI_UNITS])
{
    static const char *const units[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", NULL};
    return scaled(value, 1000, units, text);
}

bool sf_cli_co_shard(const char *text, char *recipe, size_t size, const char **by, int *out)
{
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    *by = NULL;
    *out = 1;
    if (strcmp(text, "none") == 0)
        return true;
    if (strpbrk(text, "@,")) { /* a list, with numbers of its own */
        *by = text;
        *out = 2;
        return true;
    }
    if (length >= size || (colon && (length == 0 || strcmp(colon + 1, "auto") == 0)))
        return false;
    snprintf(recipe, size, "%.*s", (int)length, text);
    *by = colon ? recipe : NULL;
    return sf_cli_micro_batches(colon ? colon + 1 : text, out);
}

bool sf_cli_micro_batches(const char *text, int *out)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    *out = 0;
    if (strcmp(text, "auto") == 0)
        return true;
    if (errno || end == text || *end || number < 1 || number > INT_MAX)
        return false;
    *out = (int)number;
    return true;
}
