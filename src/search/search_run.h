/* A search while it runs: what the files behind search/search.h share.
 *
 *     search.c   the stages: which jobs there are, and from which plans they start
 *     jobs.c     jobs on the threads, and what they find: candidates, the best plan on each mesh
 *     pins.c     what pins say of axes and meshes
 *
 * Each calls those below it and never back: search.c both others, jobs.c pins.c for names of axes.
 *
 * A stage begins, gets jobs, and runs them. Only the thread of the caller changes the search; jobs read it,
 * and write what they find into themselves.
 */
#ifndef SF_SEARCH_SEARCH_RUN_H
#define SF_SEARCH_SEARCH_RUN_H

#include <stdatomic.h>

#include "search/known.h"
#include "search/meshes.h"
#include "search/search.h"

/* Axes of a mesh that the search makes, beside an idle one; and different sizes of axes, more than all meshes
 * of a search have. */
enum { SEARCH_MOST_AXES = 3, SEARCH_MOST_SIZES = 64 };

/* The best plan on a mesh, with so many groups that do the same. */
typedef struct search_best {
    sf_priced at; /* the plan is a copy */
    int unused;
} search_best;

typedef struct search {
    const sf_search_options *options;
    sf_ground ground; /* changes only while no job runs */
    double guess;     /* of what is exposed, for plans that do not tell (search/refine.h) */
    bool thorough;    /* for two guesses, and as long as it helps */
    int cold_rounds;  /* of plans that begin with nothing, at most; 0: as many as others */
    int unused; /* of the meshes at hand: groups of devices that do the same (search/meshes.h) */
    sf_diag *diag;
    sf_found_plans *found;
    sf_arena arena;

    /* pins.c */
    bool has_wishes; /* pins with any axis */
    int nnames;      /* of axes, in pins */
    const char *names[SF_MAX_AXES];
    sf_names step_names;

    /* jobs.c */
    const char *stage;
    struct search_job *jobs; /* of the stage */
    size_t njobs, job_capacity;
    size_t first, end; /* of those that run now */
    atomic_size_t done;
    atomic_bool asked;                              /* the listener wants to stop */
    const sf_axis_space *spaces[SEARCH_MOST_SIZES]; /* ground.nspaces of them */
    sf_arena space_arenas[SEARCH_MOST_SIZES];
    size_t candidate_capacity;
    search_best *best; /* on each mesh */
    size_t nbest, best_capacity;
    sf_plan **old; /* were the best; jobs of the stage may still start from them */
    size_t nold, old_capacity;
    double least; /* that few plans take less than: sf_least_estimate */
    double busy;  /* seconds of the fastest plan that fits, without idle groups; or HUGE_VAL */
    int broken;   /* a pin that kept a plan from being a candidate, counted from 1; 0: none did */
} search;

/* jobs.c */

/* Ends the stage before, with its jobs. */
void search_begin(search *s);

/* Jobs: a space for axes of that size, unless there is one or will be (a stage that makes spaces does nothing
 * else); */
void search_add_space(search *s, int parts);

/* a known plan, priced on a mesh whose axes have its names; */
void search_add_known(search *s, const sf_known *known, const sf_mesh *mesh);

/* a plan refined: from nothing, where the axis `grant` grants wishes, for a guess of what is exposed; as it is; or
 * on a mesh that cuts an axis of its own. Plans of search_best_on and search_best_of stay until the stage ends. */
void search_add_cold(search *s, const sf_mesh *mesh, int grant, double guess);
void search_add_refined(search *s, const sf_plan *start, sf_axes settled);
void search_add_lifted(search *s, const sf_mesh *mesh, const sf_plan *start, int axis);

/* Runs the jobs; what they find becomes candidates, in the order of the jobs. Those for which there is no time
 * any more are dropped, unless they `must` run. */
sf_status search_run(search *s, const char *stage, bool must);

/* The best plan until now, of those with as many idle groups as the meshes at hand: on a mesh, and of so many
 * axes; or NULL. */
const sf_priced *search_best_on(const search *s, const sf_mesh *mesh);
const sf_priced *search_best_of(const search *s, int naxes);

/* Of the first candidate; HUGE_VAL where none fits. */
double search_best_seconds(const search *s);

/* What the search holds beside the candidates. */
void search_free(search *s);

/* pins.c */

/* Wrong pins are found here, before they fail in every job. */
sf_status search_read_pins(search *s);

/* Whether the pins can hold on the mesh. */
sf_status search_check_pins(const search *s, const sf_mesh *mesh, sf_diag *diag);

/* That a mesh must have, beside an idle one. */
int search_fewest_axes(const search *s);

/* Whether a pin names an axis so. */
bool search_is_named(const search *s, const char *axis);

/* Whether sizes are the same, and names where they count. */
bool search_is_same_mesh(const search *s, const sf_mesh *a, const sf_mesh *b);

/* Whether axes that pins name are where they were before an axis was cut, that one in either half. */
bool search_keeps_names(const search *s, const sf_mesh *mesh, const sf_mesh *coarse, int axis);

typedef struct search_meshes {
    sf_meshes of[SEARCH_MOST_AXES + 1]; /* by number of axes, beside the idle one */
    sf_meshes all;
} search_meshes;

/* All meshes with s->idle groups, at most so many for each number of axes, with the names of the pins in every
 * way in which these can hold. */
search_meshes search_list_meshes(search *s, int most);

/* Why no mesh is left: what is wrong on one of the fewest axes. */
sf_status search_fail_meshes(search *s);

/* "data=2,model=4", in the arena. */
const char *search_mesh_text(const sf_mesh *mesh, sf_arena *arena);

#endif
