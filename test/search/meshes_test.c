/* Meshes of a cluster: all of them have all devices, respect nodes and racks, and none is there twice. */
#include "search/meshes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sheaf/sheaf.h"

static sf_cluster *make(const char *text)
{
    sf_diag *diag = sf_diag_new();
    sf_cluster *cluster = NULL;
    if (sf_cluster_make(sf_str_of(text), diag, &cluster) != SF_OK)
        fail_msg("%s: %s", text, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return cluster;
}

/* "2,8 4,4" */
static void print(const sf_meshes *meshes, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < meshes->count; i++)
        for (int a = 0; a < meshes->at[i].naxes; a++)
            used += (size_t)snprintf(text + used, size - used, "%s%d",
                                     a > 0   ? ","
                                     : i > 0 ? " "
                                             : "",
                                     meshes->at[i].axes[a].size);
}

static void test_lists(void **state)
{
    (void)state;
    static const struct {
        const char *cluster;
        int naxes;
        const char *meshes;
        int unused;
    } cases[] = {
        {"1x1xV100", 1, "1", 1},
        {"1x1xV100", 2, "", 1},
        {"1x8xV100", 1, "8", 1},
        {"1x8xV100", 2, "4,2", 1},
        {"1x8xV100", 3, "2,2,2", 1},
        {"1x6xV100", 2, "3,2", 1},
        {"1x7xV100", 2, "", 1},
        {"2x8xV100", 1, "16", 1},
        {"2x8xV100", 2, "2,8 4,4 8,2", 1},
        {"2x8xV100", 3, "2,4,2 4,2,2", 1},
        {"3x4xV100", 2, "3,4 6,2", 1},
        {"8x1xV100", 2, "4,2", 1},
        {"2x2xV100", 3, "", 1},
        {"2x8xV100", 1, "2,8", 2},
        {"2x8xV100", 2, "2,4,2", 2},
        {"4x8xV100", 2, "2,2,8 2,4,4 2,8,2", 2},
        {"2x8xV100", 1, "16,1", 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_cluster *cluster = make(cases[i].cluster);
        sf_arena arena = {0};
        sf_meshes meshes = sf_meshes_of(cluster, cases[i].unused, cases[i].naxes, 100, &arena);
        char text[256];
        print(&meshes, text, sizeof text);
        if (strcmp(text, cases[i].meshes) != 0)
            fail_msg("%s, %d axes: %s", cases[i].cluster, cases[i].naxes, text);
        sf_arena_free(&arena);
        sf_cluster_free(cluster);
    }
}

/* How many members of the group of `rank` are in the node of `rank`. */
static int neighbours(const sf_cluster *cluster, const sf_mesh *mesh, sf_axes axes, int rank)
{
    int count = 0, node = sf_cluster_place(cluster, rank).node;
    for (int place = 0; place < sf_group_size(mesh, axes); place++)
        count += sf_cluster_place(cluster, sf_group_member(mesh, axes, rank, place)).node == node;
    return count;
}

/* Every rank sees as many of its group in its own node as every other. */
static void check_mesh(const sf_cluster *cluster, const sf_mesh *mesh)
{
    assert_int_equal(sf_mesh_size(mesh), cluster->ndevices);
    for (int a = 0; a < mesh->naxes; a++) {
        assert_true(mesh->axes[a].size >= 2);
        int first = neighbours(cluster, mesh, 1u << a, 0);
        for (int rank = 1; rank < cluster->ndevices; rank++)
            assert_int_equal(neighbours(cluster, mesh, 1u << a, rank), first);
    }
}

static void test_topology(void **state)
{
    (void)state;
    static const char *const clusters[] = {"2x8xV100", "4x8xH100", "3x4xV100",
                                           "6x6xV100", "5x3xV100", "16x2xV100"};
    for (size_t c = 0; c < sizeof clusters / sizeof *clusters; c++) {
        sf_cluster *cluster = make(clusters[c]);
        for (int naxes = 1; naxes <= 3; naxes++) {
            sf_arena arena = {0};
            sf_meshes meshes = sf_meshes_of(cluster, 1, naxes, 1000, &arena);
            for (int i = 0; i < meshes.count; i++) {
                check_mesh(cluster, &meshes.at[i]);
                for (int j = 0; j < i; j++)
                    assert_memory_not_equal(&meshes.at[i], &meshes.at[j], sizeof(sf_mesh));
            }
            sf_arena_free(&arena);
        }
        sf_cluster_free(cluster);
    }
}

/* Many devices: the list is cut, and the cuts at nodes come first. */
static void test_many(void **state)
{
    (void)state;
    sf_cluster *cluster = make("128x8xH100");
    sf_arena arena = {0};
    sf_meshes two = sf_meshes_of(cluster, 1, 2, 4, &arena),
              three = sf_meshes_of(cluster, 1, 3, 4, &arena);
    assert_int_equal(two.count, 4);
    assert_int_equal(three.count, 4);
    assert_int_equal(two.at[0].axes[1].size, 8);
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

/* Names go to axes in every way, each mesh once; meshes of too few axes have none. */
static void test_names(void **state)
{
    (void)state;
    static const char *const names[] = {"data", "model"};
    sf_arena arena = {0};
    sf_mesh mesh = {3, {{SF_FREE_AXIS, 4}, {SF_FREE_AXIS, 3}, {SF_FREE_AXIS, 2}}};
    sf_meshes one = {1, &mesh};
    for (int nnames = 0; nnames <= 2; nnames++) {
        static const int expected[] = {1, 3, 6};
        sf_meshes named = sf_meshes_named(&one, nnames, names, &arena);
        assert_int_equal(named.count, expected[nnames]);
        for (int i = 0; i < named.count; i++) {
            int nfree = 0;
            for (int a = 0; a < 3; a++) {
                nfree += sf_axis_is_free(&named.at[i].axes[a]);
                assert_int_equal(named.at[i].axes[a].size, mesh.axes[a].size);
            }
            assert_int_equal(nfree, 3 - nnames);
            for (int n = 0; n < nnames; n++)
                assert_true(sf_mesh_axis(&named.at[i], sf_str_of(names[n])) >= 0);
            for (int k = 0; k < i && nnames > 0; k++) {
                bool same = true;
                for (int a = 0; a < 3; a++)
                    same = same && strcmp(named.at[i].axes[a].name, named.at[k].axes[a].name) == 0;
                assert_false(same);
            }
        }
    }
    mesh.naxes = 1;
    assert_int_equal(sf_meshes_named(&one, 2, names, &arena).count, 0);
    sf_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_topology),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
