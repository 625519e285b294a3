#include "pass/plan_passes.h"

#include <stdio.h>

/* A name, the text of a file, or "". */
sf_status sf_plan_passes_cluster(const sf_plan *plan, sf_diag *diag, sf_cluster **out)
{
    sf_str text = sf_str_of(plan->passes.cluster);
    char cores[32];
    if (sf_str_starts(text, "{"))
        return sf_cluster_read(text, "the cluster of the plan's passes", diag, out);
    snprintf(cores, sizeof cores, "1x%dxCPU", sf_mesh_size(&plan->mesh));
    return sf_cluster_make(text.length > 0 ? text : sf_str_of(cores), diag, out);
}

static sf_status find_costs(const sf_plan *plan, const sf_cluster *cluster, sf_arena *arena,
                            sf_diag *diag, sf_costs **out)
{
    int sizes[SF_MAX_AXES];
    for (int a = 0; a < plan->mesh.naxes; a++)
        sizes[a] = plan->mesh.axes[a].size;
    return sf_costs_new(cluster, plan->mesh.naxes, sizes, 0, arena, diag, out);
}

static sf_status read_passes(const sf_plan *plan, sf_arena *arena, sf_diag *diag, sf_pass_list *out)
{
    return plan->passes.may_load ? sf_pass_list_load(plan->passes.list, arena, diag, out)
                                 : sf_pass_list_read(plan->passes.list, arena, diag, out);
}

bool sf_plan_is_approximate(const sf_plan *plan)
{
    sf_arena arena = {0};
    sf_diag unheard = {0};
    sf_pass_list list;
    bool is =
        read_passes(plan, &arena, &unheard, &list) == SF_OK && sf_pass_list_is_approximate(&list);
    sf_diag_clear(&unheard);
    sf_arena_free(&arena);
    return is;
}

static sf_status rewrite(const sf_plan *plan, const sf_costs *costs, sf_program *program,
                         sf_arena *arena, sf_diag *diag, sf_pass_outcome **outcomes, int *count)
{
    sf_pass_list list;
    SF_TRY(read_passes(plan, arena, diag, &list));
    sf_pass_run run = {&list, costs, plan->passes.memory, arena};
    sf_pass_outcome *all = outcomes ? SF_ARRAY(arena, list.count + 2, sf_pass_outcome) : NULL;
    SF_TRY(sf_passes_run(program, &run, diag, all, count));
    if (outcomes)
        *outcomes = all;
    return SF_OK;
}

sf_status sf_plan_rewrite(const sf_plan *plan, const sf_costs *costs, sf_program *program,
                          sf_arena *arena, sf_diag *diag, sf_pass_outcome **outcomes, int *count)
{
    sf_cluster *cluster = NULL;
    sf_costs *own = NULL;
    sf_status status = SF_OK;
    if (!*plan->passes.list)
        return SF_OK;
    if (*plan->passes.cluster || !costs) {
        status = sf_plan_passes_cluster(plan, diag, &cluster);
        if (status == SF_OK)
            status = find_costs(plan, cluster, arena, diag, &own);
        costs = own;
    }
    if (status == SF_OK)
        status = rewrite(plan, costs, program, arena, diag, outcomes, count);
    sf_cluster_free(cluster);
    return status;
}

/* Whether the library has the cluster by its name: then only the name is kept. */
static bool is_of_library(const sf_cluster *cluster)
{
    sf_cluster *same = NULL;
    sf_diag unheard = {0};
    bool is = sf_cluster_make(sf_str_of(cluster->name), &unheard, &same) == SF_OK &&
              sf_cluster_hash(same) == sf_cluster_hash(cluster);
    sf_diag_clear(&unheard);
    sf_cluster_free(same);
    return is;
}

sf_status sf_plan_name_passes(sf_plan *plan, const char *names, const sf_cluster *cluster,
                              int64_t memory, sf_diag *diag)
{
    sf_arena arena = {0};
    sf_pass_list list;
    sf_buf text = {0};
    sf_status status = sf_pass_list_load(names, &arena, diag, &list);
    sf_plan_passes passes = {list.count ? names : "", "", memory, true};
    if (status == SF_OK && cluster && is_of_library(cluster))
        passes.cluster = cluster->name;
    else if (status == SF_OK && cluster)
        sf_cluster_write(cluster, &text);
    if (text.text)
        passes.cluster = text.text;
    if (status == SF_OK)
        sf_plan_set_passes(plan, &passes);
    sf_buf_free(&text);
    sf_arena_free(&arena);
    return status;
}
