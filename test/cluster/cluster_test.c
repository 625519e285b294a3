/* Clusters: the library, shorthands, the file, the hash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/cluster.h"
#include "cluster/device_library.h"
#include "cluster/part.h"

static sf_cluster *make(const char *text)
{
    sf_cluster *cluster = NULL;
    assert_int_equal(sf_cluster_make(sf_str_of(text), NULL, &cluster), SF_OK);
    return cluster;
}

static void test_shorthands(void **state)
{
    (void)state;
    static const struct {
        const char *text, *kind;
        int nodes, devices, lanes;
        double network;
    } known[] = {
        {"2x8xV100", "V100-32GB-SXM2", 2, 16, 4, 0.85 * 12.5e9},
        {"4x8xH100", "H100-80GB-SXM5", 4, 32, 8, 0.85 * 50e9},
        {"1x4xCPU", "CPU-core", 1, 4, 1, 0.85 * 1.25e9},
        {"1x1xv100-pcie", "V100-32GB-PCIe", 1, 1, 1, 0.85 * 12.5e9},
        {"3x2xV100-16GB-PCIe", "V100-16GB-PCIe", 3, 6, 1, 0.85 * 12.5e9},
        {"1x8xV100-16GB", "V100-16GB-SXM2", 1, 8, 4, 0.85 * 12.5e9},
        {"8x1xV100S@2x25G", "V100S-32GB-PCIe", 8, 8, 2, 0.85 * 3.125e9},
        {"2x8xA100-40GB@100G", "A100-40GB-SXM4", 2, 16, 1, 0.85 * 12.5e9},
        {"128x8xH200", "H200-141GB-SXM5", 128, 1024, 8, 0.85 * 50e9},
        {"rhino-m8", "V100-32GB-SXM2", 2, 16, 1, 0.85 * 12.5e9},
        {"rhino-s1", "V100S-32GB-PCIe", 8, 8, 1, 0.85 * 12.5e9},
        {"slapo", "V100-32GB-SXM2", 8, 64, 1, 0.85 * 12.5e9},
        {"nnscaler", "V100-32GB-SXM2", 2, 32, 8, 0.85 * 12.5e9},
        {"nnscaler-dgx1", "V100-32GB-SXM2", 4, 32, 1, 0.85 * 12.5e9},
        {"deepcompile", "H100-80GB-SXM5", 4, 32, 8, 42.5e9},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        sf_cluster *cluster = make(known[i].text);
        assert_string_equal(cluster->name, known[i].text);
        assert_string_equal(cluster->kinds[0].name, known[i].kind);
        assert_int_equal(cluster->nnodes, known[i].nodes);
        assert_int_equal(sf_cluster_devices(cluster), known[i].devices);
        assert_int_equal(cluster->nodes[0].network.lanes, known[i].lanes);
        assert_true(cluster->nodes[0].network.bandwidth == known[i].network);
        sf_cluster_free(cluster);
    }
}

static void test_bad_shorthands(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "is no cluster of the library"},
        {"V100", "is no cluster of the library"},
        {"2x0xV100", "is no cluster of the library"},
        {"2x8x", "is no cluster of the library"},
        {"0x8xV100", "is no cluster of the library"},
        {"-2x8xV100", "is no cluster of the library"},
        {"2x8xV100@", "is no cluster of the library"},
        {"2x8xV100@100", "is no cluster of the library"},
        {"2x8xV100@0G", "is no cluster of the library"},
        {"2x8xV100@100Gb", "is no cluster of the library"},
        {"99999999999999999999x8xV100", "is no cluster of the library"},
        {"2x8xV10", "\"V10\" is no kind of device; did you mean \"V100\"?"},
        {"2x8xK80", "\"K80\" is no kind of device"},
        {"2x8xV100-80GB", "no kind of device"},
        {"2x8xV100-PCIe-32GB", "no kind of device"},
        {"2x8x-V100", "is no cluster of the library"},
        {"1048576x2xV100", "at most 1048576 devices"},
        {"9223372036854775807x9223372036854775807xV100", "at most 1048576 devices"},
        {"+", "is no cluster of the library"},
        {"8xA100+", "is no cluster of the library"},
        {"+8xA100", "is no cluster of the library"},
        {"8xA100++8xV100", "is no cluster of the library"},
        {"8xA100+8xK80", "\"K80\" is no kind of device"},
        {"8xA100+1048576xV100", "at most 1048576 devices"},
        {"1xV100+1xV100+1xV100+1xV100+1xV100+1xV100+1xV100+1xV100+1xV100+1xV100+1xV100+1xV100+"
         "1xV100+1xV100+1xV100+1xV100+1xV100",
         "at most 16 clusters"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sf_cluster *cluster;
        sf_diag *diag = sf_diag_new();
        assert_int_equal(sf_cluster_make(sf_str_of(bad[i].text), diag, &cluster), SF_EUSAGE);
        if (!strstr(sf_diag_text(diag, 0), bad[i].message))
            fail_msg("%s: %s", bad[i].text, sf_diag_text(diag, 0));
        sf_diag_free(diag);
    }
}

/* Clusters side by side, and parts of them. */
static void test_side_by_side(void **state)
{
    (void)state;
    sf_cluster *both = make("8xA100+2x4xV100@25G+8xA100");
    assert_int_equal(both->nkinds, 2);
    assert_int_equal(both->nruns, 3);
    assert_int_equal(both->nnodes, 4);
    assert_int_equal(both->ndevices, 24);
    assert_string_equal(both->kinds[both->nodes[1].kind].name, "V100-32GB-SXM2");
    assert_int_equal(both->nodes[2].kind, both->nodes[0].kind);
    assert_true(both->nodes[1].network.bandwidth == 0.85 * 3.125e9);
    assert_int_equal(sf_cluster_place(both, 20).node, 3);
    static const struct {
        const char *nodes, *same; /* as this cluster, or NULL: there is none */
    } parts[] = {{"0", "8xA100"},
                 {"1-2", "2x4xV100@25G"},
                 {"2", "4xV100@25G"},
                 {"0,3", "2x8xA100"},
                 {"3,0", "2x8xA100"},
                 {"1-2,0", "2x4xV100@25G+8xA100"},
                 {"0-3", "8xA100+2x4xV100@25G+8xA100"},
                 {"", NULL},
                 {"4", NULL},
                 {"0,0", NULL},
                 {"1-2,2", NULL},
                 {"2-1", NULL},
                 {"-1", NULL},
                 {"0,", "8xA100"},
                 {"x", NULL},
                 {"99999999999999999999", NULL}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        sf_arena arena = {0};
        sf_cluster *part, *same = parts[i].same ? make(parts[i].same) : NULL;
        sf_status status = sf_cluster_part_of(both, sf_str_of(parts[i].nodes), &arena, NULL, &part);
        assert_int_equal(status, same ? SF_OK : SF_EINPUT);
        if (same && sf_cluster_hash(part) != sf_cluster_hash(same))
            fail_msg("nodes %s are not %s", parts[i].nodes, parts[i].same);
        sf_cluster_free(same);
        sf_arena_free(&arena);
    }
    sf_cluster_free(both);
}

static void test_library_rows(void **state)
{
    (void)state;
    for (int i = 0; sf_library_kind_nth(i); i++) {
        const sf_library_kind *row = sf_library_kind_nth(i);
        const sf_device_kind *kind = &row->kind;
        assert_ptr_equal(sf_library_kind_find(sf_str_of(kind->name)), row);
        assert_true(kind->source[0] && row->nodes[0]);
        assert_true(kind->flops[SF_MATH_F32] > 0 && kind->vector_flops > 0);
        assert_true(kind->bandwidth > 0 && kind->memory > 0);
        assert_true(row->inside.bandwidth > row->network.bandwidth);
        assert_true(row->inside.latency < row->network.latency);
    }
    for (int i = 0; sf_library_bed_nth(i); i++)
        assert_non_null(sf_library_kind_find(sf_str_of(sf_library_bed_nth(i)->kind)));
}

/* Everything that a file can say: two kinds, racks, curves. */
static const char full[] =
    "{\"format\": \"sheaf cluster\", \"version\": 1, \"name\": \"all\",\n"
    " \"devices\": [\n"
    "  {\"name\": \"a\", \"source\": \"s\", \"memory\": 100, \"flops\": {\"f32\": 1e9, \"f8\": "
    "4e9},\n"
    "   \"vector_flops\": 1e9, \"bandwidth\": 2e9, \"product_share\": 0.5, \"memory_share\": 1,\n"
    "   \"ramp\": 0, \"launch\": 1e-6, \"drag\": 0.25, \"products\": {\"f32\": [[1e3, 1e-6], [1e9, "
    "1]]},\n"
    "   \"loops\": [[64, 1e-6]]},\n"
    "  {\"name\": \"b\", \"memory\": 200, \"flops\": {\"f32\": 1e9}, \"vector_flops\": 1e9,\n"
    "   \"bandwidth\": 2e9, \"product_share\": 0.5, \"memory_share\": 1, \"ramp\": 0.5,\n"
    "   \"launch\": 1e-6}],\n"
    " \"nodes\": [\n"
    "  {\"count\": 2, \"devices\": 4, \"device\": \"a\",\n"
    "   \"inside\": {\"latency\": 0, \"bandwidth\": 1e9, \"lanes\": 0},\n"
    "   \"network\": {\"latency\": 1e-5, \"bandwidth\": 1e8, \"lanes\": 2}},\n"
    "  {\"count\": 1, \"devices\": 3, \"device\": \"b\",\n"
    "   \"inside\": {\"latency\": 1e-6, \"bandwidth\": 1e9, \"lanes\": 1},\n"
    "   \"network\": {\"latency\": 1e-5, \"bandwidth\": 1e8, \"lanes\": 2}}],\n"
    " \"racks\": {\"nodes\": 2, \"uplink\": {\"latency\": 2e-5, \"bandwidth\": 1e7, \"lanes\": "
    "1}},\n"
    " \"collectives\": [{\"kind\": \"permute\", \"shape\": [2, 1, 1], \"seconds\": [[1, 2], [3, "
    "4]]}]\n"
    "}\n";

static sf_status read(const char *text, sf_diag *diag, sf_cluster **out)
{
    return sf_cluster_read(sf_str_of(text), "file.json", diag, out);
}

static void test_read(void **state)
{
    (void)state;
    sf_cluster *cluster;
    assert_int_equal(read(full, NULL, &cluster), SF_OK);
    assert_int_equal(cluster->ndevices, 11);
    assert_int_equal(cluster->nnodes, 3);
    assert_string_equal(cluster->kinds[1].name, "b");
    assert_true(cluster->kinds[0].flops[SF_MATH_F8] == 4e9);
    assert_true(cluster->kinds[0].products[SF_MATH_F32].seconds[1] == 1);
    assert_true(cluster->uplink.bandwidth == 1e7);
    static const struct {
        int device, run, node, rack;
    } places[] = {{0, 0, 0, 0}, {3, 0, 0, 0}, {4, 0, 1, 0}, {8, 1, 2, 1}, {10, 1, 2, 1}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        sf_device_place place = sf_cluster_place(cluster, places[i].device);
        assert_int_equal(place.run, places[i].run);
        assert_int_equal(place.node, places[i].node);
        assert_int_equal(place.rack, places[i].rack);
    }
    sf_cluster_free(cluster);
}

static void check_round_trip(const sf_cluster *cluster)
{
    sf_buf first = {0}, second = {0};
    sf_cluster *again;
    sf_cluster_write(cluster, &first);
    assert_int_equal(read(first.text, NULL, &again), SF_OK);
    sf_cluster_write(again, &second);
    assert_string_equal(first.text, second.text);
    assert_true(sf_cluster_hash(cluster) == sf_cluster_hash(again));
    sf_cluster_free(again);
    sf_buf_free(&first);
    sf_buf_free(&second);
}

static void test_round_trips(void **state)
{
    (void)state;
    char text[128];
    for (int i = 0; sf_library_bed_nth(i); i++) {
        sf_cluster *cluster = make(sf_library_bed_nth(i)->name);
        check_round_trip(cluster);
        sf_cluster_free(cluster);
    }
    for (int i = 0; sf_library_kind_nth(i); i++) {
        snprintf(text, sizeof text, "5x3x%s", sf_library_kind_nth(i)->kind.name);
        sf_cluster *cluster = make(text);
        check_round_trip(cluster);
        sf_cluster_free(cluster);
    }
    sf_cluster *cluster;
    assert_int_equal(read(full, NULL, &cluster), SF_OK);
    check_round_trip(cluster);
    sf_cluster_free(cluster);
}

/* `full` with the first `from` replaced by `to`. */
static char *edited(const char *from, const char *to)
{
    const char *at = strstr(full, from);
    assert_non_null(at);
    char *text = malloc(sizeof full + strlen(to));
    sprintf(text, "%.*s%s%s", (int)(at - full), full, to, at + strlen(from));
    return text;
}

static void test_wrong_files(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } wrong[] = {
        {"sheaf cluster", "sheaf plan", "file.json:1:12: error: this is \"sheaf plan\""},
        {"\"version\": 1", "\"version\": 2", "\"version\" is an integer from 1 to 1"},
        {"\"name\": \"all\",", "", "\"name\" is missing"},
        {"\"name\": \"all\"", "\"name\": 3", "\"name\" is a string"},
        {"\"name\": \"all\"", "\"nome\": \"all\"", "a cluster has no \"nome\""},
        {"\"memory\": 100", "\"memory\": 0", "file.json:3:42: error: \"memory\" is an integer"},
        {"\"memory\": 100", "\"memory\": 1.5", "\"memory\" is an integer"},
        {"\"f32\": 1e9, ", "", "\"f32\" is missing"},
        {"\"f8\"", "\"f4\"", "flops has no \"f4\""},
        {"\"f8\": 4e9", "\"f8\": -4e9", "\"f8\" is a positive number"},
        {"\"f8\": 4e9", "\"f8\": 1e31", "\"f8\" is a positive number of at most 1e+30"},
        {"\"f8\": 4e9", "\"f8\": \"x\"", "\"f8\" is a positive number"},
        {"\"product_share\": 0.5", "\"product_share\": 1.5", "of at most 1"},
        {"\"ramp\": 0", "\"ramp\": -1", "\"ramp\" is a non-negative number"},
        {"\"drag\": 0.25", "\"drag\": 2", "\"drag\" is a non-negative number of at most 1"},
        {"\"drag\": 0.25", "\"threads\": -1", "\"threads\" is a non-negative number"},
        {"\"drag\": 0.25", "\"pack_run\": -1", "\"pack_run\" is a non-negative number"},
        {"\"loops\": [[64, 1e-6]]", "\"convolutions\": []", "an array of 1 to 64 items"},
        {"\"loops\": [[64, 1e-6]]", "\"paces\": [[1, 2], [2, 1]]", "seconds do not decrease"},
        {"\"loops\": [[64, 1e-6]]", "\"batched\": {\"f31\": 1}", "f31"},
        {"\"loops\": [[64, 1e-6]]", "\"gpu\": {\"products\": {}}", "has \"loops\""},
        {"\"loops\": [[64, 1e-6]]", "\"gpu\": {}", "\"products\" is missing"},
        {"\"loops\": [[64, 1e-6]]", "\"gpu\": {\"others\": {}}", "gpu has no \"others\""},
        {"\"loops\": [[64, 1e-6]]",
         "\"loops\": [[64, 1e-6]], \"paces\": [[1, 1]], \"gpu\": {\"products\": {\"f32\": "
         "[{\"depth\": 2, "
         "\"seconds\": [[1, 1]]}, {\"depth\": 2, \"seconds\": [[1, 1]]}]}}",
         "depths increase"},
        {"[[1e3, 1e-6], [1e9, 1]]", "[]", "an array of 1 to 64 items"},
        {"[[1e3, 1e-6], [1e9, 1]]", "[[1e3]]", "a point of a curve"},
        {"[[1e3, 1e-6], [1e9, 1]]", "[[0, 1]]", "a point of a curve"},
        {"[[1e3, 1e-6], [1e9, 1]]", "[[2, 1], [2, 1]]", "amounts increase"},
        {"[[1e3, 1e-6], [1e9, 1]]", "[[2, 2], [3, 1]]", "seconds do not decrease"},
        {"\"name\": \"b\"", "\"name\": \"a\"", "two devices are called \"a\""},
        {"\"device\": \"b\"", "\"device\": \"c\"", "\"devices\" has none called \"c\""},
        {"\"count\": 2", "\"count\": 0", "\"count\" is an integer from 1"},
        {"\"count\": 2", "\"count\": 1048576", "at most 1048576 devices"},
        {"\"lanes\": 0", "\"lanes\": -1", "\"lanes\" is an integer from 0"},
        {"\"lanes\": 0", "\"lanes\": 0, \"peer\": 0", "\"peer\" is a positive number"},
        {"\"lanes\": 2", "\"lanes\": 2, \"peer\": 1", "network has no \"peer\""},
        {"\"bandwidth\": 1e8", "\"bandwidth\": 0", "\"bandwidth\" is a positive number"},
        {"\"racks\": {\"nodes\": 2, ", "\"racks\": {", "\"nodes\" is missing"},
        {"\"racks\": {\"nodes\": 2", "\"racks\": {\"nodes\": 0", "\"nodes\" is an integer from 1"},
        {"permute", "gossip", "no collective \"gossip\""},
        {"[2, 1, 1]", "[2, 1]", "an array of 3 to 3"},
        {"[2, 1, 1]", "[2, 0, 1]", "members in a node"},
        {"[[1, 2], [3, 4]]", "7", "\"seconds\" is an array"},
        {"\"collectives\": [", "\"collectives\": [3, ", "is an object, not a number"},
        {"}\n", "", "error"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *text = edited(wrong[i].from, wrong[i].to);
        sf_cluster *cluster;
        sf_diag *diag = sf_diag_new();
        assert_int_equal(read(text, diag, &cluster), SF_EINPUT);
        if (!strstr(sf_diag_text(diag, 0), wrong[i].message))
            fail_msg("%s for %s: %s", wrong[i].to, wrong[i].from, sf_diag_text(diag, 0));
        sf_diag_free(diag);
        free(text);
    }
}

/* Calibrated values of a device are kept unchanged. */
static void test_measured_device(void **state)
{
    (void)state;
    char *text = edited("\"drag\": 0.25",
                        "\"threads\": 4, \"divide\": 1e-9, \"function\": 2e-9, \"fold\": 3e-9, "
                        "\"strided\": 4e-9, \"run\": 5e-9, \"pack\": 6e-9, \"pack_across\": 7e-9, "
                        "\"pack_run\": 8e-9, \"convolutions\": [[1e3, 1e-6], [1e6, 1e-3]], "
                        "\"paces\": [[1e3, 1e-11], [1e6, 1e-10]], "
                        "\"batched\": {\"f32\": [[1e3, 1e-7]], \"bf16\": [[1e3, 2e-7]]}");
    sf_cluster *cluster, *again;
    sf_buf out = {0};
    assert_int_equal(read(text, NULL, &cluster), SF_OK);
    const sf_device_kind *a = &cluster->kinds[0];
    const double numbers[] = {a->divide, a->function, a->fold,        a->strided,
                              a->run,    a->pack,     a->pack_across, a->pack_run};
    for (int i = 0; i < 8; i++)
        assert_true(numbers[i] > (i + 0.99) * 1e-9 && numbers[i] < (i + 1.01) * 1e-9);
    assert_true(a->threads == 4 && a->convolutions.count == 2 && cluster->kinds[1].fold == 0);
    assert_true(a->paces.count == 2 && cluster->kinds[1].paces.count == 0);
    assert_true(a->batched[SF_MATH_F32].count == 1 && a->batched[SF_MATH_BF16].count == 1 &&
                a->batched[SF_MATH_F64].count == 0);
    sf_cluster_write(cluster, &out);
    assert_int_equal(read(out.text, NULL, &again), SF_OK);
    assert_true(sf_cluster_hash(cluster) == sf_cluster_hash(again));
    sf_buf_free(&out);
    sf_cluster_free(again);
    sf_cluster_free(cluster);
    free(text);
}

#define GPU_PRODUCTS                                                                               \
    "\"gpu\": {\"products\": {\"bf16\": [{\"depth\": 64, \"seconds\": [[1e3, 1e-6]]}, "            \
    "{\"depth\": 256, "                                                                            \
    "\"seconds\": [[1e3, 2e-6], [1e6, 1e-3]]}]}"

/* Measured curves of a GPU read back, by type and depth. */
static void test_measured_gpu(void **state)
{
    (void)state;
    char *text =
        edited("\"drag\": 0.25",
               "\"paces\": [[1e3, 1e-11]], " GPU_PRODUCTS
               ", \"kernel_gradients\": {\"tf32\": [[1e3, 1e-7]]}, \"attention\": "
               "{\"bf16\": [[1e3, 3e-7]]}, \"repeats\": [[1e3, 4e-7]]}, \"turned\": 1e-12");
    sf_cluster *cluster, *again;
    sf_buf out = {0};
    assert_int_equal(read(text, NULL, &cluster), SF_OK);
    const sf_gpu *gpu = cluster->kinds[0].gpu;
    assert_true(gpu && !cluster->kinds[1].gpu);
    assert_true(gpu->products[SF_MATH_BF16].count == 2 && gpu->products[SF_MATH_F32].count == 0);
    assert_true(gpu->products[SF_MATH_BF16].depths[1] == 256);
    assert_true(gpu->products[SF_MATH_BF16].curves[1].count == 2);
    assert_int_equal(gpu->units[SF_UNIT_KERNEL_GRADIENT][SF_MATH_TF32].count, 1);
    assert_int_equal(gpu->units[SF_UNIT_ATTENTION][SF_MATH_BF16].count, 1);
    assert_int_equal(gpu->units[SF_UNIT_ATTENTION_GRADIENT][SF_MATH_BF16].count, 0);
    assert_true(gpu->memory[SF_TOUCH_REPEATS].count == 1 && cluster->kinds[0].transposed == 1e-12);
    sf_cluster_write(cluster, &out);
    assert_int_equal(read(out.text, NULL, &again), SF_OK);
    assert_true(sf_cluster_hash(cluster) == sf_cluster_hash(again));
    sf_buf_free(&out);
    sf_cluster_free(again);
    sf_cluster_free(cluster);
    free(text);
}

/* Whatever costs depend on changes the hash; names do not, nor does the way equal nodes are written. */
static void test_hash(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        bool same;
    } edits[] = {
        {"\"all\"", "\"other\"", true},
        {"\"s\"", "\"another\"", true},
        {"100", "101", false},
        {"\"f8\": 4e9", "\"f8\": 5e9", false},
        {"\"vector_flops\": 1e9", "\"vector_flops\": 2e9", false},
        {"\"bandwidth\": 2e9", "\"bandwidth\": 3e9", false},
        {"\"product_share\": 0.5", "\"product_share\": 0.6", false},
        {"\"ramp\": 0", "\"ramp\": 1e-9", false},
        {"\"drag\": 0.25", "\"drag\": 0.5", false},
        {"\"drag\": 0.25", "\"drag\": 0.25, \"threads\": 3", false},
        {"\"drag\": 0.25", "\"drag\": 0.25, \"divide\": 3", false},
        {"\"drag\": 0.25", "\"drag\": 0.25, \"function\": 3", false},
        {"\"drag\": 0.25", "\"drag\": 0.25, \"fold\": 3", false},
        {"\"drag\": 0.25", "\"drag\": 0.25, \"strided\": 3", false},
        {"\"drag\": 0.25", "\"drag\": 0.25, \"run\": 3", false},
        {"\"drag\": 0.25", "\"drag\": 0.25, \"pack\": 3", false},
        {"\"drag\": 0.25", "\"drag\": 0.25, \"pack_across\": 3", false},
        {"\"drag\": 0.25", "\"drag\": 0.25, \"pack_run\": 3", false},
        {"\"loops\"", "\"convolutions\": [[64, 1e-6]], \"loops\"", false},
        {"\"loops\"", "\"paces\": [[64, 1e-10]], \"loops\"", false},
        {"\"loops\"", "\"paces\": [[64, 1e-10]], " GPU_PRODUCTS "}, \"loops\"", false},
        {"\"loops\"", "\"batched\": {\"f32\": [[64, 1e-6]]}, \"loops\"", false},
        {"\"loops\"", "\"batched\": {\"f64\": [[64, 1e-6]]}, \"loops\"", false},
        {"[1e9, 1]", "[1e9, 2]", false},
        {"[[64, 1e-6]]", "[[65, 1e-6]]", false},
        {"\"count\": 2", "\"count\": 3", false},
        {"\"devices\": 4", "\"devices\": 5", false},
        {"\"device\": \"b\"", "\"device\": \"a\"", false},
        {"\"lanes\": 0", "\"lanes\": 4", false},
        {"\"lanes\": 0", "\"lanes\": 0, \"peer\": 1e8", false},
        {"\"latency\": 1e-5", "\"latency\": 2e-5", false},
        {"\"racks\": {\"nodes\": 2", "\"racks\": {\"nodes\": 3", false},
        {"\"bandwidth\": 1e7", "\"bandwidth\": 2e7", false},
        {"permute", "broadcast", false},
        {"[2, 1, 1]", "[2, 2, 1]", false},
    };
    sf_cluster *cluster, *other;
    assert_int_equal(read(full, NULL, &cluster), SF_OK);
    /* On every machine and in every build: plans name it. */
    assert_true(sf_cluster_hash(cluster) == UINT64_C(0x92be73cac0d78244));
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        char *text = edited(edits[i].from, edits[i].to);
        assert_int_equal(read(text, NULL, &other), SF_OK);
        if ((sf_cluster_hash(other) == sf_cluster_hash(cluster)) != edits[i].same)
            fail_msg("%s for %s", edits[i].to, edits[i].from);
        sf_cluster_free(other);
        free(text);
    }
    sf_cluster_free(cluster);

    sf_cluster *one = make("2x8xV100"), *two = make("2x8xV100");
    sf_nodes halves[] = {one->nodes[0], one->nodes[0]};
    halves[0].count = halves[1].count = 1;
    two->nodes = halves;
    two->nruns = 2;
    assert_true(sf_cluster_hash(one) == sf_cluster_hash(two));
    sf_cluster_free(one);
    sf_cluster_free(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_shorthands),
        cmocka_unit_test(test_bad_shorthands),
        cmocka_unit_test(test_library_rows),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_wrong_files),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_measured_device),
        cmocka_unit_test(test_measured_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
