/* The state of the builder of a pipeline rank's step, which the files of local/time/pipeline_step.h
 * share.
 *
 *     pipeline_survey.c     values of all micro-batches that tasks need, and the pass that makes them
 *     pipeline_placement.c  places of nodes: the pipeline rank, and the position in its order
 *     pipeline_needs.c      the work of this pipeline rank at each position, from needed values
 *     pipeline_messages.c   messages between pipeline ranks, in order
 *     pipeline_deferred.c     messages that can wait, and the layouts of all
 *     pipeline_results.c    its arguments and results
 *     pipeline_step.c       the step: nodes, sums over micro-batches, messages
 */
#ifndef SF_LOCAL_TIME_PIPELINE_BUILDER_H
#define SF_LOCAL_TIME_PIPELINE_BUILDER_H

#include "local/time/microbatch_builder.h"
#include "local/time/pipeline_step.h"

enum { NEVER = UINT32_MAX };

/* A version of a value in a run (versions outside of loops in run 0): an instance. Runs are the
 * micro-batches, and after them those of the survey. */
typedef struct pipe_message {
    uint32_t from, to; /* groups */
    uint32_t version, run;
    bool is_part;     /* of a sum that is made on several pipeline ranks */
    bool is_deferred; /* sent after the messages of the task at `sent_at`, received at `due_at` */
    uint32_t due_at;
    int64_t number; /* among those between the two, in this direction */
    uint32_t sent_at,
        used_at; /* the place in the order of who sends, and of who receives; NEVER: not known */
    int64_t arrived; /* messages the other way that have been used where it is sent */
    uint32_t
        next; /* that takes the same instance elsewhere, or brings another part of it, counted from 1; 0: none */
} pipe_message;

/* Messages from one group, in order. */
typedef struct pipe_channel {
    uint32_t *at;
    size_t count, capacity, received;
} pipe_channel;

/* The work of the pipeline rank at a position in its order: a node or a reshard in a run, or one
 * result of a barrier. */
typedef struct pipe_doing {
    bool is_reshard;
    uint32_t index;  /* node id, or reshard */
    uint32_t result; /* of a barrier */
    uint32_t run;
} pipe_doing;

typedef struct pipe_doings {
    pipe_doing *at;
    size_t count, capacity;
} pipe_doings;

/* A collective over a set of pipeline ranks. */
typedef struct pipe_together {
    int64_t groups, count;
} pipe_together;

typedef struct piping {
    microbatching *t;
    const sf_pipeline *pipeline;
    const sf_pipe *pipe;
    const sf_unstacked *parts; /* or NULL */
    uint32_t group, nmicrobatches;
    uint32_t nruns;                /* micro-batches, or twice as many if there is a survey */
    uint32_t narguments, nresults; /* of the pipeline rank's step */
    uint64_t *wanted;              /* by instance: the groups that need it */
    uint32_t *due;  /* by instance: the first place of this pipeline rank that needs it, or NEVER */
    bool *leads;    /* by version: other stages of the backward pass follow from it */
    bool *needed;   /* by version: tasks read it, or a value that follows from it */
    bool *early;    /* by version: it is there before all tasks */
    bool *surveyed; /* by version: tasks need a value of all micro-batches that follows from it */
    bool has_middle; /* tasks do need a value of all micro-batches */
    uint32_t **
        places; /* by pipeline rank, and by stage, pass and run: the place of the task in the order of the pipeline rank */
    uint32_t
        *middle; /* by pipeline rank: the place where that is put together, where there is one, */
    uint32_t *last;           /* and that of the nodes after all tasks */
    int64_t **begins, **ends; /* by pipeline rank and place: of tasks, if all take equally long */
    pipe_doings *doings;      /* by place of this pipeline rank */

    local_version **versions; /* by run, and at the end, invariant ones */
    uint32_t *output_of;   /* by version: the first reshard whose output it is, counted from 1, */
    uint32_t *next_output; /* and by reshard, the next */
    loop_output *loop_outputs; /* by reshard, of its output */
    sf_value *sums;            /* by reshard: so far; SF_NONE: no part yet */

    pipe_message *
        messages; /* to and from this pipeline rank, those between two in the order in which they are sent */
    size_t nmessages, message_capacity;
    uint32_t *outgoing; /* by instance: the first message that takes it elsewhere, counted from 1 */
    uint32_t *incoming; /* by instance: the first message that brings it, or a part of it */
    pipe_channel *channels;  /* by pipeline rank that sends */
    pipe_together *together; /* collectives that this pipeline rank has come to, by set of groups */
    size_t ntogether, together_capacity;
} piping;

/* Of those that have something, the first sends it to who has it not. */
static inline bool pipe_sends(uint64_t have, uint32_t from, uint32_t to)
{
    return !(have >> to & 1) && from == (uint32_t)__builtin_ctzll(have);
}

/* A version of a value in a micro-batch: versions outside of loops have one for all. */
static inline uint32_t pipe_same(const piping *p, uint32_t version)
{
    return p->t->b->reshards->versions[version].same;
}

static inline size_t pipe_instance(const piping *p, uint32_t version, uint32_t run)
{
    uint32_t at = pipe_same(p, version);
    return (size_t)at * p->nruns + (is_microbatched_version(p->t, at) ? run : 0);
}

/* How many instances a micro-batched version has, or one outside of loops. */
static inline uint32_t pipe_runs(const piping *p, bool microbatches)
{
    return microbatches ? p->nruns : 1;
}

/* The part of the batch that a run is of. */
static inline uint32_t pipe_microbatch_of(const piping *p, uint32_t run)
{
    return run % p->nmicrobatches;
}

static inline bool pipe_any_result(const piping *p, const sf_node *node, const bool *by_version)
{
    for (uint32_t r = 0; r < node->nresults; r++)
        if (by_version[pipe_same(p, p->t->b->reshards->made[node->result + r])])
            return true;
    return false;
}

/* Tasks need its output: it is completed in the middle, else after all tasks. */
static inline bool pipe_output_in_middle(const piping *p, const sf_resharding *reshard)
{
    return p->needed[pipe_same(p, reshard->to)];
}

/* The run with the first micro-batch of its output; those of the other micro-batches follow. */
static inline uint32_t pipe_first_run(const piping *p, const sf_resharding *reshard)
{
    return pipe_output_in_middle(p, reshard) ? p->nruns - p->nmicrobatches : 0;
}

static inline uint32_t pipe_first(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* pipeline_survey.c: whether tasks need a value of all micro-batches, and, if so, whether there is
 * a survey; then the positions of tasks in the orders of all pipeline ranks. The position of a
 * node's task in a pass and run; NEVER: there is no such task. */
sf_status pipe_find_survey(piping *p);
void pipe_find_places(piping *p);
uint32_t pipe_task_place(const piping *p, sf_stage_task task, uint32_t group);

/* pipeline_placement.c: every reader makes its own; which pipeline ranks compute the node in the
 * run (nodes outside of loops: those that hold the stage); at which position in the order of one of
 * them; and which of them add up the output, 0: each reader. */
bool pipe_is_anywhere(const piping *p, const sf_node *node);
uint64_t pipe_hosts(const piping *p, const sf_node *node, uint32_t run);
uint32_t pipe_place(const piping *p, const sf_node *node, uint32_t run, uint32_t group);
uint64_t pipe_output_hosts(const piping *p, const sf_resharding *reshard, uint32_t run);

/* Nodes of the backward pass whose results other stages read; values that tasks read; values
 * available before tasks. */
void pipe_find_leading(piping *p);
void pipe_find_needed(piping *p);
void pipe_find_early(piping *p);

/* pipeline_needs.c: `wanted`, `due` and `doings`. */
void pipe_find_wanted(piping *p);

/* pipeline_results.c: arguments and results of the pipeline rank's step, and their attributes. */
void pipe_find_ends(piping *p);

/* pipeline_deferred.c: the layout of a value in a message. Whether a message, of which it is known
 * where it is made, is deferred: then its places are set. `pipe_time_tasks` first. */
sf_layout pipe_message_layout(const piping *p, uint32_t version);
bool pipe_defer(const piping *p, pipe_message *m);
void pipe_time_tasks(piping *p);

/* pipeline_messages.c: where the receiver reads it at the latest for the first time; NEVER: that is
 * not known. */
uint32_t pipe_find_use(const piping *p, const pipe_message *m);

/* Fills in `messages` and its indices. */
void pipe_list_messages(piping *p);

#endif
