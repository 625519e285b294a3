#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* Numbers are put together from integers: printf's %f would follow the locale. */

sf_text sf_text_count(int64_t value)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, value);
    sf_text text = {{0}};
    int first = digits[0] == '-', put = 0;
    for (int i = 0; i < length; i++) {
        if (i > first && (length - i) % 3 == 0)
            text.at[put++] = ',';
        text.at[put++] = digits[i];
    }
    return text;
}

/* Three digits and a unit; whole numbers below `step` as they are. */
static sf_text with_unit(double value, double step, int nunits, const char *const *units)
{
    sf_text text = {{0}};
    int unit = 0;
    if (!(value >= 0) || isinf(value)) {
        snprintf(text.at, sizeof text.at, "%s", value > 0 ? "inf" : "?");
        return text;
    }
    while (unit + 1 < nunits && value >= step * 0.9995) {
        value /= step;
        unit++;
    }
    int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    long long scale = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
    long long scaled = value < 1e15 ? llround(value * (double)scale) : (long long)1e15 * scale;
    if (decimals == 0)
        snprintf(text.at, sizeof text.at, "%lld%s%s", scaled, *units[unit] ? " " : "", units[unit]);
    else
        snprintf(text.at, sizeof text.at, "%lld.%0*lld %s", scaled / scale, decimals,
                 scaled % scale, units[unit]);
    return text;
}

sf_text sf_text_flops(double value)
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};
    return with_unit(value, 1000, sizeof units / sizeof *units, units);
}

sf_text sf_text_bytes(double value)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    return with_unit(value, 1024, sizeof units / sizeof *units, units);
}

sf_text sf_text_seconds(double value)
{
    sf_text text;
    bool tiny = value > 0 && value < 5e-9; /* 0.00 us */
    const char *unit = value >= 1 ? "s" : value >= 1e-3 ? "ms" : tiny ? "ns" : "us";
    double scaled = value >= 1      ? value
                    : value >= 1e-3 ? 1e3 * value
                    : tiny          ? 1e9 * value
                                    : 1e6 * value;
    int digits = scaled < 10 ? 2 : scaled < 100 ? 1 : 0;
    snprintf(text.at, sizeof text.at, "%.*f %s", digits, scaled, unit);
    return text;
}

sf_text sf_text_share(double part, double all)
{
    sf_text text = {"-"};
    if (!(all > 0) || !(part >= 0) || isinf(all))
        return text;
    long long tenths = llround(1000 * (part / all));
    snprintf(text.at, sizeof text.at, "%lld.%lld%%", tenths / 10, tenths % 10);
    return text;
}
