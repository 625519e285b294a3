/* A cluster for tests of what goes on beside what: links that take about as long as what is computed, and nothing else that
 * takes any time. */
#ifndef TEST_SUPPORT_SLOW_H
#define TEST_SUPPORT_SLOW_H

#include "cluster/cluster.h"

/* So many devices in a node, each of 1e9 flops a second; `bandwidth` is that of the links, in bytes a second. */
sf_cluster *test_slow_links(int devices, double bandwidth);

#endif
