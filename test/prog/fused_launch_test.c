/* Which small loops can be launched as one: by their operands and results, their addresses, and
 * their sizes. */
#include "prog/fused_launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { BUFFERS = 6, MOST = 4, BYTES = 64, SMALL = 3 * BYTES };

typedef struct building {
    sf_target target;
    sf_buffer buffers[BUFFERS];
    sf_inst insts[MOST];
    sf_view views[MOST][2];
    sf_program p;
} building;

/* An instruction is "01": a loop that reads buffer 0 and writes buffer 1; "01w" waits for an event, "01c" is a call, "01l" touches
 * more than is small. */
static void add_inst(building *b, const char *text, size_t length)
{
    size_t at = b->p.ninsts++;
    bool is_large = length > 2 && text[2] == 'l';
    for (int v = 0; v < 2; v++)
        b->views[at][v] = (sf_view){.buffer = (uint32_t)(text[v] - '0'),
                                    .dtype = SF_F32,
                                    .rank = 1,
                                    .dims = {is_large ? BYTES / 2 : BYTES / 4},
                                    .strides = {1}};
    b->insts[at] = (sf_inst){.kind = length > 2 && text[2] == 'c' ? SF_INST_CALL : SF_INST_LOOP,
                             .nin = 1,
                             .nout = 1,
                             .in = &b->views[at][0],
                             .out = &b->views[at][1],
                             .nwaits = length > 2 && text[2] == 'w'};
}

static void build(building *b, const char *insts)
{
    *b = (building){.target = {.small_bytes = SMALL}};
    b->p.target = &b->target;
    b->p.buffers = b->buffers;
    b->p.nbuffers = BUFFERS;
    b->p.insts = b->insts;
    for (int i = 0; i < BUFFERS; i++)
        b->buffers[i].bytes = BYTES;
    while (*insts) {
        size_t length = strcspn(insts, " ");
        add_inst(b, insts, length);
        insts += length + strspn(insts + length, " ");
    }
}

static void assert_bunches(building *b, char *const *places, const char *expected)
{
    sf_arena arena = {0};
    const uint32_t *firsts = sf_fused_launches_of(&b->p, places, &arena);
    char found[MOST + 1] = {0};
    for (size_t i = 0; i < b->p.ninsts; i++)
        found[i] = (char)('0' + firsts[i]);
    assert_int_equal(strncmp(found, expected, b->p.ninsts), 0);
    sf_arena_free(&arena);
}

static void test_what_they_touch(void **state)
{
    (void)state;
    static const struct {
        const char *insts, *fused_launches; /* by instruction: the first */
    } cases[] = {
        {"01 23 45", "000"},     {"01 02 03", "000"}, /* all read the same */
        {"00 11 22", "000"},                          /* each changes its own */
        {"01 12 34", "011"},                          /* reads what was written */
        {"01 20 34", "011"},                          /* writes what was read */
        {"01 21 34", "011"},                          /* writes what was written */
        {"01 23 14 50", "0022"}, /* accesses before the fused launch do not matter */
        {"01 23w 45", "011"},    /* waits for an asynchronous instruction */
        {"01w 23", "00"},        /* for which all of them can wait */
        {"01 23c 45", "012"},    {"01 23l 45", "012"}, {"01l 23 45", "011"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        building b;
        build(&b, cases[i].insts);
        assert_bunches(&b, NULL, cases[i].fused_launches);
        b.target.small_bytes = 0; /* nothing is */
        assert_bunches(&b, NULL, "0123");
    }
}

/* Memory that one of them read for the last time may be where another writes. */
static void test_where_it_stands(void **state)
{
    (void)state;
    static const struct {
        int at[BUFFERS];
        const char *fused_launches;
    } cases[] = {
        {{0, 64, 128, 192, 256, 320}, "000"}, {{0, 64, 128, 0, 256, 320}, "011"},
        {{0, 64, 128, 127, 256, 320}, "011"}, /* by a byte */
        {{0, 64, 128, 192, 256, 63}, "002"},  {{0, 64, 0, 192, 64, 320}, "002"},
        {{0, 64, 128, 128, 256, 320}, "000"}, {{0, 64, 0, 192, 0, 320}, "000"},
    };
    static char memory[BUFFERS * BYTES + BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        building b;
        char *places[BUFFERS];
        build(&b, "01 23 45");
        for (int k = 0; k < BUFFERS; k++)
            places[k] = memory + cases[i].at[k];
        assert_bunches(&b, places, cases[i].fused_launches);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_they_touch),
        cmocka_unit_test(test_where_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
