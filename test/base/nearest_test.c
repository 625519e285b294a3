/* Suggestions: near names, and none for nonsense. */
#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const names[] = {"dp", "zero1", "zero2", "megatron", "sequence", "data", "V100"};

static const char *nearest_of(const char *text)
{
    sf_nearest nearest = {.text = sf_str_of(text)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        sf_nearest_try(&nearest, names[i]);
    return nearest.best;
}

static const struct {
    const char *text, *means; /* NULL: nothing */
} cases[] = {
    {"megatorn", "megatron"},
    {"Megatron", "megatron"},
    {"sequense", "sequence"},
    {"zero", "zero1"},
    {"zreo2", "zero2"},
    {"dat", "data"},
    {"v100", "V100"},
    {"V10", "V100"},
    {"DP", "dp"},
    {"xyzzy", NULL},
    {"", NULL},
    {"ab", NULL},
    {"mega", NULL},
    {"x", NULL},
    {"sequencesequence", NULL},
};

static void test_nearest(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *best = nearest_of(cases[i].text);
        if (cases[i].means ? !best || strcmp(best, cases[i].means) != 0 : best != NULL)
            fail_msg("'%s' is near %s", cases[i].text, best ? best : "nothing");
    }
}

/* Distances by the definition, on all words of up to four letters out of two. */
static size_t slow(const char *a, size_t n, const char *b, size_t m)
{
    if (n == 0 || m == 0)
        return n + m;
    size_t best = slow(a, n - 1, b, m - 1) + (a[n - 1] != b[m - 1]);
    size_t left = slow(a, n - 1, b, m) + 1, right = slow(a, n, b, m - 1) + 1;
    best = left < best ? left : best;
    best = right < best ? right : best;
    if (n > 1 && m > 1 && a[n - 1] == b[m - 2] && a[n - 2] == b[m - 1]) {
        size_t swapped = slow(a, n - 2, b, m - 2) + 1;
        best = swapped < best ? swapped : best;
    }
    return best;
}

static void word_of(int number, char out[8])
{
    int length = 0;
    for (; number > 1; number /= 2)
        out[length++] = number % 2 ? 'b' : 'a';
    out[length] = 0;
}

static void test_distances(void **state)
{
    (void)state;
    for (int x = 1; x < 128; x++)
        for (int y = 1; y < 128; y++) {
            char a[8], b[8];
            word_of(x, a);
            word_of(y, b);
            sf_nearest nearest = {.text = sf_str_of(a)};
            sf_nearest_try(&nearest, b);
            size_t far = slow(a, strlen(a), b, strlen(b));
            bool near = far == 0 || (far <= 2 && 2 * far < strlen(a));
            if (near != (nearest.best != NULL) || (near && nearest.distance != far))
                fail_msg("%s and %s are %zu apart", a, b, far);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nearest),
                                       cmocka_unit_test(test_distances)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
