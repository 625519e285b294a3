#include "cluster/device_library.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "base/number.h"
#include "cluster/device_curves.h"
#include "cluster/part.h"

enum { MOST_SIDE_BY_SIDE = 16 };

#define GIB (INT64_C(1) << 30)
#define TERA 1e12
#define GIGA 1e9
#define MICRO 1e-6

/* The usable share of a line rate, and the time of a step of a ring: see docs/reference/cluster.md,
 * "Links". */
#define NVLINK(rate)                                                                               \
    {                                                                                              \
        .latency = 3.4 * MICRO, .bandwidth = 0.82 * (rate)*GIGA                                    \
    }
/* Links of 25 GB/s that go to other devices: six of each, and of the six four to the three others of its
 * half of a DGX-1, where a pair has one or two. */
#define NVLINK_DIRECT                                                                              \
    {                                                                                              \
        .latency = 3.4 * MICRO, .bandwidth = 0.82 * 150 * GIGA, .peer = 0.82 * 100 / 3 * GIGA      \
    }
#define PCIE(rate, paths)                                                                          \
    {                                                                                              \
        .latency = 5.7 * MICRO, .bandwidth = 0.82 * (rate)*GIGA, .lanes = paths                    \
    }
#define NICS(count, gigabits)                                                                      \
    {                                                                                              \
        .latency = 14 * MICRO, .bandwidth = 0.85 * (gigabits) / 8 * GIGA, .lanes = count           \
    }

/* Beside programs a GPU holds a context, 0.51 GiB on an H200 with CUDA 13, cuBLAS, 0.07, and NCCL, 0.64 for one communicator; the
 * driver takes up to 0.9 of the memory in the data sheet (79.1 GiB of an H100 are left, and 139.8 of the 140.4 of an H200). Gaps of
 * the allocator are an estimate. TPUs hold their programs. */
#define GPU_RESERVE (9 * GIB / 4)
#define TPU_RESERVE (GIB / 2)

/* Shares of peak speed, and the least time of small work: docs/reference/cluster.md, "Devices".
 * That of Hopper was measured, on an H200; for the older ones it is an estimate. */
#define HOPPER_HABITS                                                                              \
    .is_gpu = true, .reserve = GPU_RESERVE, .product_share = 0.78, .memory_share = 0.9,            \
    .ramp = 2.5 * MICRO, .launch = 1.5 * MICRO
#define OLDER_HABITS                                                                               \
    .is_gpu = true, .reserve = GPU_RESERVE, .product_share = 0.8, .memory_share = 0.88,            \
    .ramp = 5 * MICRO, .launch = 2 * MICRO

/* The way to the host's memory, which each device has to itself. */
#define HOST_PCIE(rate) .host_bandwidth = 0.82 * (rate)*GIGA, .host_latency = 10 * MICRO

/* Links to each of the others in a node. */
#define MESH_LINKS(rate, links)                                                                    \
    {                                                                                              \
        .latency = 3.4 * MICRO, .bandwidth = 0.82 * (rate) * (links)*GIGA,                         \
        .peer = 0.82 * (rate)*GIGA                                                                 \
    }

/* Links of a TPU in all, one way, which is what is announced (1200 GB/s for both ways of v5p, 4800 Gb/s for one): rings that use
 * all axes of the torus have them all, neighbours a part. No loss is known. Products of f32 are of bf16 by default, as JAX has them, and of six of bf16 where
 * more is asked for; vectors are an estimate, 1 / 64 of products. */
#define ICI(rate)                                                                                  \
    {                                                                                              \
        .latency = 1 * MICRO, .bandwidth = (rate)*GIGA                                             \
    }
#define TPU_HABITS                                                                                 \
    .is_gpu = true, .reserve = TPU_RESERVE, .product_share = 0.8, .memory_share = 0.9,             \
    .ramp = 2 * MICRO, .launch = 1 * MICRO

#define V100_SHEET "NVIDIA V100 data sheet"
#define A100_SHEET "NVIDIA A100 data sheet"
#define H100_SHEET "NVIDIA H100 data sheet and architecture paper, without sparsity"
#define H200_SHEET "NVIDIA H200 data sheet, without sparsity"

/* Flops are in the order of sf_math: f64, f32, tf32, bf16, f16, f8. */
static const sf_library_kind kinds[] = {
    {.kind = {.name = "V100-32GB-SXM2",
              .source = V100_SHEET,
              .memory = 32 * GIB,
              .flops = {7.8 * TERA, 15.7 * TERA, 0, 0, 125 * TERA, 0},
              .vector_flops = 15.7 * TERA,
              .bandwidth = 900 * GIGA,
              OLDER_HABITS,
              HOST_PCIE(16)},
     .inside = NVLINK_DIRECT,
     .direct = 8,
     .network = NICS(4, 100),
     .nodes = "DGX-1: 6 NVLink2 a device, 4 x 100 Gb/s"},
    {.kind = {.name = "V100-16GB-SXM2",
              .source = V100_SHEET,
              .memory = 16 * GIB,
              .flops = {7.8 * TERA, 15.7 * TERA, 0, 0, 125 * TERA, 0},
              .vector_flops = 15.7 * TERA,
              .bandwidth = 900 * GIGA,
              OLDER_HABITS,
              HOST_PCIE(16)},
     .inside = NVLINK_DIRECT,
     .direct = 8,
     .network = NICS(4, 100),
     .nodes = "DGX-1: 6 NVLink2 a device, 4 x 100 Gb/s"},
    {.kind = {.name = "V100-32GB-PCIe",
              .source = V100_SHEET,
              .memory = 32 * GIB,
              .flops = {7 * TERA, 14 * TERA, 0, 0, 112 * TERA, 0},
              .vector_flops = 14 * TERA,
              .bandwidth = 900 * GIGA,
              OLDER_HABITS,
              HOST_PCIE(16)},
     .inside = PCIE(16, 4),
     .network = NICS(1, 100),
     .nodes = "PCIe 3.0 x16, two devices a switch, 1 x 100 Gb/s"},
    {.kind = {.name = "V100-16GB-PCIe",
              .source = V100_SHEET,
              .memory = 16 * GIB,
              .flops = {7 * TERA, 14 * TERA, 0, 0, 112 * TERA, 0},
              .vector_flops = 14 * TERA,
              .bandwidth = 900 * GIGA,
              OLDER_HABITS,
              HOST_PCIE(16)},
     .inside = PCIE(16, 4),
     .network = NICS(1, 100),
     .nodes = "PCIe 3.0 x16, two devices a switch, 1 x 100 Gb/s"},
    {.kind = {.name = "V100S-32GB-PCIe",
              .source = V100_SHEET,
              .memory = 32 * GIB,
              .flops = {8.2 * TERA, 16.4 * TERA, 0, 0, 130 * TERA, 0},
              .vector_flops = 16.4 * TERA,
              .bandwidth = 1134 * GIGA,
              OLDER_HABITS,
              HOST_PCIE(16)},
     .inside = PCIE(16, 4),
     .network = NICS(1, 100),
     .nodes = "PCIe 3.0 x16, two devices a switch, 1 x 100 Gb/s"},
    {.kind = {.name = "A100-80GB-SXM4",
              .source = A100_SHEET,
              .memory = 80 * GIB,
              .flops = {19.5 * TERA, 19.5 * TERA, 156 * TERA, 312 * TERA, 312 * TERA, 0},
              .vector_flops = 19.5 * TERA,
              .bandwidth = 2039 * GIGA,
              OLDER_HABITS,
              HOST_PCIE(32)},
     .inside = NVLINK(300),
     .network = NICS(8, 200),
     .nodes = "DGX A100: NVSwitch, 8 x 200 Gb/s"},
    {.kind = {.name = "A100-40GB-SXM4",
              .source = A100_SHEET,
              .memory = 40 * GIB,
              .flops = {19.5 * TERA, 19.5 * TERA, 156 * TERA, 312 * TERA, 312 * TERA, 0},
              .vector_flops = 19.5 * TERA,
              .bandwidth = 1555 * GIGA,
              OLDER_HABITS,
              HOST_PCIE(32)},
     .inside = NVLINK(300),
     .network = NICS(8, 200),
     .nodes = "DGX A100: NVSwitch, 8 x 200 Gb/s"},
    {.kind = {.name = "H100-80GB-SXM5",
              .source = H100_SHEET,
              .memory = 80 * GIB,
              .flops = {66.9 * TERA, 66.9 * TERA, 494.7 * TERA, 989.4 * TERA, 989.4 * TERA,
                        1978.9 * TERA},
              .vector_flops = 66.9 * TERA,
              .bandwidth = 3350 * GIGA,
              HOPPER_HABITS,
              HOST_PCIE(64)},
     .is_like_h200 = true,
     .inside = NVLINK(450),
     .network = NICS(8, 400),
     .nodes = "DGX H100: NVSwitch, 8 x 400 Gb/s"},
    {.kind = {.name = "H200-141GB-SXM5",
              .source = H200_SHEET,
              .memory = INT64_C(150109880320),
              .flops = {66.9 * TERA, 66.9 * TERA, 494.7 * TERA, 989.4 * TERA, 989.4 * TERA,
                        1978.9 * TERA},
              .vector_flops = 66.9 * TERA,
              .bandwidth = 4800 * GIGA,
              HOPPER_HABITS,
              HOST_PCIE(64)},
     .is_like_h200 = true,
     .inside = NVLINK(450),
     .network = NICS(8, 400),
     .nodes = "DGX H200: NVSwitch, 8 x 400 Gb/s"},
    {.kind = {.name = "H20-96GB-SXM5",
              .source = "NVIDIA H20 data sheet, without sparsity",
              .memory = 96 * GIB,
              .flops = {1 * TERA, 44 * TERA, 74 * TERA, 148 * TERA, 148 * TERA, 296 * TERA},
              .vector_flops = 44 * TERA,
              .bandwidth = 4000 * GIGA,
              HOPPER_HABITS,
              HOST_PCIE(64)},
     .is_like_h200 = true,
     .inside = NVLINK(450),
     .network = NICS(8, 400),
     .nodes = "HGX H20: NVSwitch, 8 x 400 Gb/s"},
    {.kind = {.name = "B200-180GB-SXM6",
              .source = "NVIDIA DGX B200 data sheet, without sparsity",
              .memory = 178 * GIB,
              .flops = {37 * TERA, 75 * TERA, 1100 * TERA, 2250 * TERA, 2250 * TERA, 4500 * TERA},
              .vector_flops = 75 * TERA,
              .bandwidth = 7700 * GIGA,
              HOPPER_HABITS,
              HOST_PCIE(64)},
     .is_like_h200 = true,
     .inside = NVLINK(900),
     .network = NICS(8, 400),
     .nodes = "DGX B200: NVSwitch, 8 x 400 Gb/s"},
    {.kind = {.name = "GB200-186GB",
              .source = "NVIDIA GB200 NVL72 data sheet, without sparsity",
              .memory = 186 * INT64_C(1000000000),
              .flops = {40 * TERA, 80 * TERA, 1250 * TERA, 2500 * TERA, 2500 * TERA, 5000 * TERA},
              .vector_flops = 80 * TERA,
              .bandwidth = 8000 * GIGA,
              HOPPER_HABITS,
              HOST_PCIE(225)},
     .is_like_h200 = true,
     .inside = NVLINK(900),
     .network = NICS(4, 400),
     .nodes = "NVL72: nodes of up to 72 on NVLink5, NVLink-C2C to the host"},
    {.kind = {.name = "L40S-48GB",
              .source = "NVIDIA L40S data sheet, without sparsity",
              .memory = 45 * GIB, /* ECC takes a part of 48 */
              .flops = {1.4 * TERA, 91.6 * TERA, 183 * TERA, 362 * TERA, 362 * TERA, 733 * TERA},
              .vector_flops = 91.6 * TERA,
              .bandwidth = 864 * GIGA,
              OLDER_HABITS,
              HOST_PCIE(32)},
     .inside = PCIE(32, 4),
     .network = NICS(1, 200),
     .nodes = "PCIe 4.0 x16, two devices a switch, 1 x 200 Gb/s"},
    {.kind = {.name = "RTX4090-24GB",
              .source = "NVIDIA Ada GPU architecture paper, without sparsity",
              .memory = 24 * GIB,
              .flops = {1.3 * TERA, 82.6 * TERA, 82.6 * TERA, 165.2 * TERA, 165.2 * TERA,
                        330.3 * TERA},
              .vector_flops = 82.6 * TERA,
              .bandwidth = 1008 * GIGA,
              OLDER_HABITS,
              HOST_PCIE(32)},
     .inside = PCIE(32, 4),
     .network = NICS(1, 25),
     .nodes = "PCIe 4.0 x16, two devices a switch, 1 x 25 Gb/s"},
    {.kind = {.name = "MI300X-192GB",
              .source = "AMD Instinct MI300X data sheet, without sparsity",
              .memory = INT64_C(206141652992),
              .flops = {163.4 * TERA, 163.4 * TERA, 653.7 * TERA, 1307.4 * TERA, 1307.4 * TERA,
                        2614.9 * TERA},
              .vector_flops = 163.4 * TERA,
              .bandwidth = 5300 * GIGA,
              OLDER_HABITS,
              HOST_PCIE(64)},
     .inside = MESH_LINKS(64, 7),
     .network = NICS(8, 400),
     .nodes = "8 in a full mesh of Infinity Fabric, 8 x 400 Gb/s"},
    {.kind = {.name = "TPUv4-32GB",
              .source = "Jouppi et al., TPU v4 (ISCA 2023); Google Cloud, TPU v4",
              .memory = 32 * GIB,
              .flops = {0, 275 / 6.0 * TERA, 275 * TERA, 275 * TERA, 0, 0},
              .vector_flops = 4.3 * TERA,
              .bandwidth = 1228 * GIGA,
              TPU_HABITS},
     .inside = ICI(300),
     .network = NICS(4, 50),
     .nodes = "3D torus of 6 links, 300 GB/s a chip; 4 chips a host"},
    {.kind = {.name = "TPUv5e-16GB",
              .source = "Google Cloud, TPU v5e",
              .memory = 16 * GIB,
              .flops = {0, 197 / 6.0 * TERA, 197 * TERA, 197 * TERA, 0, 0},
              .vector_flops = 3.1 * TERA,
              .bandwidth = 819 * GIGA,
              TPU_HABITS},
     .inside = ICI(200),
     .network = NICS(1, 100),
     .nodes = "2D torus of 4 links, 1600 Gb/s a chip"},
    {.kind = {.name = "TPUv5p-95GB",
              .source = "Google Cloud, TPU v5p",
              .memory = 95 * GIB,
              .flops = {0, 459 / 6.0 * TERA, 459 * TERA, 459 * TERA, 0, 0},
              .vector_flops = 7.2 * TERA,
              .bandwidth = 2765 * GIGA,
              TPU_HABITS},
     .inside = ICI(600),
     .network = NICS(4, 50),
     .nodes = "3D torus of 6 links, 4800 Gb/s a chip"},
    {.kind = {.name = "TPUv6e-32GB",
              .source = "Google Cloud, TPU v6e",
              .memory = 32 * GIB,
              .flops = {0, 918 / 6.0 * TERA, 918 * TERA, 918 * TERA, 0, 0},
              .vector_flops = 14.3 * TERA,
              .bandwidth = 1640 * GIGA,
              TPU_HABITS},
     .inside = ICI(448),
     .network = NICS(4, 50),
     .nodes = "2D torus of 4 links, 3584 Gb/s a chip"},
    {.kind = {.name = "CPU-core",
              .source = "a core of 3 GHz with two 256-bit fused multiply-adds a cycle",
              .memory = 4 * GIB,
              .flops = {48 * GIGA, 96 * GIGA, 0, 0, 0, 0},
              .vector_flops = 24 * GIGA,
              .bandwidth = 10 * GIGA,
              .product_share = 0.8,
              .memory_share = 0.8,
              .ramp = 2 * MICRO,
              .launch = 1 * MICRO},
     .inside = {.latency = 2 * MICRO, .bandwidth = 5 * GIGA, .lanes = 4},
     .network = {.latency = 30 * MICRO, .bandwidth = 0.85 * 10 / 8 * GIGA, .lanes = 1},
     .nodes = "shared memory, 1 x 10 Gb/s"},
};

static const sf_library_bed beds[] = {
    {"slapo", "Slapo (ASPLOS 2024), section 5: 8 p3dn.24xlarge, 100 Gb/s between them", 8, 8,
     "V100-32GB-SXM2", NICS(1, 100)},
    {"nnscaler", "nnScaler (OSDI 2024), section 8.3.1: 2 DGX-2, 8 x 100 Gb/s", 2, 16,
     "V100-32GB-SXM2", NICS(8, 100)},
    {"nnscaler-dgx1", "nnScaler (OSDI 2024), section 8.3.5: 4 DGX-1, 1 x 100 Gb/s", 4, 8,
     "V100-32GB-SXM2", NICS(1, 100)},
    {"rhino-m8", "Rhino, section 7.1, platform M8: 2 nodes, 100 Gb/s RoCE", 2, 8, "V100-32GB-SXM2",
     NICS(1, 100)},
    {"rhino-s1", "Rhino, section 7.1, platform S1: 8 nodes of one device, 100 Gb/s RoCE", 8, 1,
     "V100S-32GB-PCIe", NICS(1, 100)},
    {"deepcompile",
     "DeepCompile, section 5: 4 nodes, 8 HCAs, 340 GB/s observed",
     4,
     8,
     "H100-80GB-SXM5",
     {.latency = 14 * MICRO, .bandwidth = 42.5 * GIGA, .lanes = 8}},
};

const sf_library_kind *sf_library_kind_nth(int index)
{
    return index >= 0 && index < (int)(sizeof kinds / sizeof *kinds) ? &kinds[index] : NULL;
}

const sf_library_bed *sf_library_bed_nth(int index)
{
    return index >= 0 && index < (int)(sizeof beds / sizeof *beds) ? &beds[index] : NULL;
}

/* Cuts the next word off the front. */
static sf_str next_name_word(sf_str *text)
{
    const char *dash = memchr(text->at, '-', text->length);
    size_t length = dash ? (size_t)(dash - text->at) : text->length;
    sf_str word = {text->at, length};
    size_t cut = dash ? length + 1 : length;
    *text = (sf_str){text->at + cut, text->length - cut};
    return word;
}

static bool same_word(sf_str a, sf_str b)
{
    return a.length == b.length && strncasecmp(a.at, b.at, a.length) == 0;
}

static bool name_matches(sf_str text, const char *name)
{
    sf_str rest = sf_str_of(name);
    if (!same_word(next_name_word(&text), next_name_word(&rest)))
        return false;
    while (text.length > 0) {
        sf_str word = next_name_word(&text);
        do {
            if (rest.length == 0)
                return false;
        } while (!same_word(word, next_name_word(&rest)));
    }
    return true;
}

const sf_library_kind *sf_library_kind_find(sf_str text)
{
    for (int i = 0; text.length > 0 && sf_library_kind_nth(i); i++)
        if (name_matches(text, sf_library_kind_nth(i)->kind.name))
            return sf_library_kind_nth(i);
    return NULL;
}

/* A parsed shorthand. */
typedef struct request {
    int64_t nodes, devices;
    sf_str kind;
    int64_t nics, gigabits; /* 0: those of the kind */
} request;

/* Cuts a number and the character after it off the front; `after` 0 is the end. */
static bool take_count(sf_str *text, char after, int64_t *out)
{
    size_t length = 0;
    while (length < text->length && text->at[length] >= '0' && text->at[length] <= '9')
        length++;
    if (length == text->length || text->at[length] != after ||
        !sf_number_int((sf_str){text->at, length}, out) || *out < 1)
        return false;
    *text = (sf_str){text->at + length + 1, text->length - length - 1};
    return true;
}

static bool parse_network(sf_str text, request *out)
{
    if (!take_count(&text, 'x', &out->nics))
        out->nics = 1;
    return take_count(&text, 'G', &out->gigabits) && text.length == 0 && out->nics <= INT_MAX &&
           out->gigabits <= 1000000;
}

static bool parse_wish(sf_str text, request *out)
{
    if (!take_count(&text, 'x', &out->nodes))
        return false;
    if (!take_count(&text, 'x', &out->devices)) {
        out->devices = out->nodes; /* of one node */
        out->nodes = 1;
    }
    const char *at = memchr(text.at, '@', text.length);
    out->kind = (sf_str){text.at, at ? (size_t)(at - text.at) : text.length};
    size_t used = out->kind.length + 1;
    return out->kind.length > 0 && isalpha((unsigned char)out->kind.at[0]) &&
           (!at || parse_network((sf_str){text.at + used, text.length - used}, out));
}

static sf_cluster *build_cluster(sf_str name, const char *source, const sf_library_kind *row,
                                 int nodes, int devices, sf_link network)
{
    sf_cluster *cluster = sf_cluster_new();
    sf_arena *arena = &cluster->arena;
    cluster->name = sf_arena_string(arena, name.at, name.length);
    cluster->source = source;
    cluster->nkinds = cluster->nruns = 1;
    cluster->kinds = sf_arena_copy(arena, &row->kind, sizeof row->kind);
    sf_nodes run = {.count = nodes, .devices = devices, .inside = row->inside, .network = network};
    if (devices > row->direct)
        run.inside.peer = 0;
    cluster->nodes = sf_arena_copy(arena, &run, sizeof run);
    return cluster;
}

static void list_name(sf_buf *list, sf_nearest *nearest, const char *name)
{
    sf_buf_printf(list, "%s%s", list->length ? ", " : "", name);
    sf_nearest_try(nearest, name);
}

/* Reports the unknown name, a near name, and the valid names. */
static sf_status fail_name(sf_str name, const char *what, const sf_nearest *nearest, sf_buf *list,
                           sf_diag *diag)
{
    if (nearest->best)
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "\"%.*s\" is %s; did you mean \"%s\"?",
                SF_STR_ARGS(name), what, nearest->best);
    else
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "\"%.*s\" is %s", SF_STR_ARGS(name), what);
    sf_status status = sf_hint(diag, "there are %s", list->text);
    sf_buf_free(list);
    return status;
}

/* People omit the part after a dash, so the first words of names count as names. */
static sf_status fail_kind(sf_str kind, sf_diag *diag)
{
    sf_buf list = {0};
    sf_nearest nearest = {.text = kind};
    char words[sizeof kinds / sizeof *kinds][32];
    for (int i = 0; sf_library_kind_nth(i); i++) {
        const char *name = sf_library_kind_nth(i)->kind.name;
        snprintf(words[i], sizeof words[i], "%.*s", (int)strcspn(name, "-"), name);
        sf_nearest_try(&nearest, words[i]);
        list_name(&list, &nearest, name);
    }
    return fail_name(kind, "no kind of device", &nearest, &list, diag);
}

static sf_status fail_cluster(sf_str text, sf_diag *diag)
{
    sf_buf list = {0};
    sf_nearest nearest = {.text = text};
    for (int i = 0; sf_library_bed_nth(i); i++)
        list_name(&list, &nearest, sf_library_bed_nth(i)->name);
    sf_buf_puts(
        &list,
        ", shorthands such as 8xH100, 2x8xV100 and 8xA100+8xV100, and files, whose names end "
        "in .json");
    return fail_name(text, "no cluster of the library, nor of the form NODESxDEVICESxKIND",
                     &nearest, &list, diag);
}

static sf_status fail_devices(sf_diag *diag)
{
    return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a cluster has at most %d devices", SF_MAX_DEVICES);
}

/* "DGX A100: NVSwitch, 1 x 100 Gb/s": the nodes of the library with the network of the name. */
static const char *name_network(sf_arena *arena, const char *nodes, const request *w)
{
    const char *last = strrchr(nodes, ',');
    int kept = last && strstr(last, " x ") ? (int)(last - nodes) : (int)strlen(nodes);
    sf_buf text = {0};
    sf_buf_printf(&text, "%.*s, %" PRId64 " x %" PRId64 " Gb/s", kept, nodes, w->nics, w->gigabits);
    const char *source = sf_arena_string(arena, text.text, text.length);
    sf_buf_free(&text);
    return source;
}

static sf_status build_wish(sf_str text, const request *w, sf_diag *diag, sf_cluster **out)
{
    const sf_library_kind *row = sf_library_kind_find(w->kind);
    if (!row)
        return fail_kind(w->kind, diag);
    if (w->nodes > SF_MAX_DEVICES || w->devices > SF_MAX_DEVICES / w->nodes)
        return fail_devices(diag);
    sf_link network = row->network;
    if (w->gigabits > 0)
        network = (sf_link)NICS((int)w->nics, (double)w->gigabits);
    *out = build_cluster(text, row->nodes, row, (int)w->nodes, (int)w->devices, network);
    if (w->gigabits > 0)
        (*out)->source = name_network(&(*out)->arena, row->nodes, w);
    return sf_cluster_finish(*out, SF_NOWHERE, diag);
}

/* A single cluster. */
static sf_status make_one(sf_str text, sf_diag *diag, sf_cluster **out)
{
    request w = {0};
    for (int i = 0; sf_library_bed_nth(i); i++) {
        const sf_library_bed *bed = sf_library_bed_nth(i);
        if (!sf_str_is(text, bed->name))
            continue;
        *out = build_cluster(text, bed->source, sf_library_kind_find(sf_str_of(bed->kind)),
                             bed->nodes, bed->devices, bed->network);
        return sf_cluster_finish(*out, SF_NOWHERE, diag);
    }
    if (parse_wish(text, &w))
        return build_wish(text, &w, diag, out);
    return fail_cluster(text, diag);
}

static sf_status join_all(sf_str text, int count, sf_cluster *const *parts, sf_diag *diag,
                          sf_cluster **out)
{
    int64_t devices = 0;
    for (int i = 0; i < count; i++)
        devices += parts[i]->ndevices;
    if (devices > SF_MAX_DEVICES)
        return fail_devices(diag);
    *out = sf_cluster_join(text, count, parts);
    return sf_cluster_finish(*out, SF_NOWHERE, diag);
}

static sf_status make_side_by_side(sf_str text, sf_diag *diag, sf_cluster **out)
{
    sf_cluster *parts[MOST_SIDE_BY_SIDE];
    int count = 0;
    sf_status status = SF_OK;
    for (sf_str rest = text, one; status == SF_OK && rest.at; count += status == SF_OK) {
        const char *plus = memchr(rest.at, '+', rest.length);
        one = (sf_str){rest.at, plus ? (size_t)(plus - rest.at) : rest.length};
        rest = plus ? (sf_str){plus + 1, rest.length - one.length - 1} : (sf_str){NULL, 0};
        status =
            count < MOST_SIDE_BY_SIDE
                ? make_one(one, diag, &parts[count])
                : sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                          "a name joins at most %d clusters with +; a file may have more nodes",
                          MOST_SIDE_BY_SIDE);
    }
    if (status == SF_OK)
        status = join_all(text, count, parts, diag, out);
    while (count-- > 0)
        sf_cluster_free(parts[count]);
    return status;
}

static void add_curves(sf_cluster *cluster)
{
    const sf_device_kind *h200 = &sf_library_kind_find(sf_str_of("H200"))->kind;
    for (int i = 0; i < cluster->nkinds; i++) {
        sf_device_kind *kind = &cluster->kinds[i];
        if (sf_library_kind_find(sf_str_of(kind->name))->is_like_h200)
            sf_device_curves_add(kind, h200, &cluster->arena);
    }
}

sf_status sf_cluster_make(sf_str text, sf_diag *diag, sf_cluster **out)
{
    sf_status status = memchr(text.at, '+', text.length) ? make_side_by_side(text, diag, out)
                                                         : make_one(text, diag, out);
    if (status == SF_OK)
        add_curves(*out);
    return status;
}
