/* The problem as an integer program, in the tight form: a variable x[v][i] for each strategy, one
 * y[e][i][j] >= 0 for each pair that is not forbidden, and
 *
 *   sum over i of x[v][i] = 1,   sum over j of y[e][i][j] = x[a][i],   sum over i of y[e][i][j] = x[b][j],
 *   at each point: sum of usage * x <= limit.
 */
#include "support/choices.h"

#ifdef SF_HAVE_CBC

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <coin/Cbc_C_Interface.h>

enum { NO_COLUMN = -1, MOST_STRATEGIES = 256 };

static void add_nodes(Cbc_Model *model, const sf_problem *p, int *column)
{
    int count = 0;
    for (uint32_t v = 0; v < p->nnodes; v++) {
        double ones[MOST_STRATEGIES];
        int members[MOST_STRATEGIES], n = 0;
        for (uint32_t s = p->first[v]; s < p->first[v + 1]; s++) {
            bool out = p->cost[s] >= SF_FORBIDDEN;
            Cbc_addCol(model, "", 0, out ? 0 : 1, out ? 0 : (double)p->cost[s], 1, 0, NULL, NULL);
            column[s] = count;
            ones[n] = 1;
            members[n++] = count++;
        }
        Cbc_addRow(model, "", n, members, ones, 'E', 1);
    }
}

/* The row that says: the pairs of one strategy, on one side of an edge, sum to that strategy. */
static void add_side(Cbc_Model *model, const int *pairs, uint32_t count, size_t stride, int own)
{
    int members[MOST_STRATEGIES + 1], n = 0;
    double factors[MOST_STRATEGIES + 1];
    for (uint32_t k = 0; k < count; k++)
        if (pairs[k * stride] != NO_COLUMN) {
            factors[n] = 1;
            members[n++] = pairs[k * stride];
        }
    factors[n] = -1;
    members[n++] = own;
    Cbc_addRow(model, "", n, members, factors, 'E', 0);
}

static void add_edge(Cbc_Model *model, const sf_problem *p, const sf_edge *edge, const int *column,
                     int *pairs)
{
    uint32_t rows = sf_problem_count(p, edge->a), columns = sf_problem_count(p, edge->b);
    for (size_t k = 0; k < (size_t)rows * columns; k++) {
        pairs[k] = NO_COLUMN;
        if (edge->cost[k] >= SF_FORBIDDEN)
            continue;
        pairs[k] = Cbc_getNumCols(model);
        Cbc_addCol(model, "", 0, 1, (double)edge->cost[k], 0, 0, NULL, NULL);
    }
    for (uint32_t i = 0; i < rows; i++)
        add_side(model, pairs + (size_t)i * columns, columns, 1, column[p->first[edge->a] + i]);
    for (uint32_t j = 0; j < columns; j++)
        add_side(model, pairs + j, rows, columns, column[p->first[edge->b] + j]);
}

static void add_limits(Cbc_Model *model, const sf_problem *p, const int *column, sf_arena *arena)
{
    int *members = SF_ARRAY(arena, p->first[p->nnodes], int);
    double *factors = SF_ARRAY(arena, p->first[p->nnodes], double);
    int *place = SF_ARRAY(arena, p->first[p->nnodes], int);
    for (uint32_t t = 0; t < p->ntimes; t++) {
        int n = 0;
        memset(place, 0, p->first[p->nnodes] * sizeof *place);
        for (uint32_t u = 0; u < p->nuses; u++) {
            const sf_use *use = &p->uses[u];
            for (uint32_t i = 0;
                 use->begin <= t && t < use->end && i < sf_problem_count(p, use->node); i++) {
                uint32_t s = p->first[use->node] + i;
                if (place[s] == 0) {
                    members[n] = column[s];
                    factors[n] = 0;
                    place[s] = ++n;
                }
                factors[place[s] - 1] += (double)use->usage[i];
            }
        }
        if (n > 0)
            Cbc_addRow(model, "", n, members, factors, 'L', (double)p->limit[t]);
    }
}

bool sf_ask_cbc(const sf_problem *problem, double seconds, int64_t *out)
{
    sf_arena arena = {0};
    Cbc_Model *model = Cbc_newModel();
    int *column = SF_ARRAY(&arena, problem->first[problem->nnodes], int);
    Cbc_setParameter(model, "logLevel", "0");
    Cbc_setParameter(model, "ratioGap", "0");
    Cbc_setParameter(model, "allowableGap", "0");
    char limit[32];
    snprintf(limit, sizeof limit, "%.0f", seconds);
    Cbc_setParameter(model, "seconds", limit);
    Cbc_setObjSense(model, 1);
    add_nodes(model, problem, column);
    for (uint32_t e = 0; e < problem->nedges; e++) {
        const sf_edge *edge = &problem->edges[e];
        size_t cells =
            (size_t)sf_problem_count(problem, edge->a) * sf_problem_count(problem, edge->b);
        add_edge(model, problem, edge, column, SF_ARRAY(&arena, cells, int));
    }
    add_limits(model, problem, column, &arena);
    Cbc_solve(model);
    *out =
        Cbc_isProvenOptimal(model) ? problem->base + llround(Cbc_getObjValue(model)) : SF_FORBIDDEN;
    Cbc_deleteModel(model);
    sf_arena_free(&arena);
    return true;
}

#else

bool sf_ask_cbc(const sf_problem *problem, double seconds, int64_t *out)
{
    (void)problem;
    (void)seconds;
    (void)out;
    return false;
}

#endif
