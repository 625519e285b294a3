#include "support/slow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

sf_cluster *test_slow_links(int devices, double bandwidth)
{
    char text[1000];
    sf_diag *diag = sf_diag_new();
    sf_cluster *cluster;
    const char *link = "{\"latency\": 1e-9, \"bandwidth\": %g, \"lanes\": 0}";
    char links[200];
    snprintf(links, sizeof links, link, bandwidth);
    snprintf(text, sizeof text,
             "{\"format\": \"sheaf cluster\", \"version\": 1, \"name\": \"slow\", \"devices\": [{"
             "\"name\": \"one\", \"memory\": 1000000000000, \"flops\": {\"f32\": 1e9}, "
             "\"vector_flops\": 1e9, \"bandwidth\": 1e11, \"product_share\": 1, "
             "\"memory_share\": 1, \"ramp\": 0, \"launch\": 1e-9}], \"nodes\": [{\"count\": 1, "
             "\"devices\": %d, \"device\": \"one\", \"inside\": %s, \"network\": %s}]}",
             devices, links, links);
    if (sf_cluster_read(sf_str_of(text), "test", diag, &cluster) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return cluster;
}
