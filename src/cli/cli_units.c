/* Numbers with units. */
#include <math.h>
#include <stdio.h>

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
