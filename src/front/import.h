/* Import: from a module, as the text has it, to the one graph.
 *
 * Calls are inlined, bodies of reductions become monoids, loops with a known trip count are
 * unrolled, every node takes its normal form, and unused nodes are dropped. Then scopes, phases,
 * roles and state links are found. */
#ifndef SF_FRONT_IMPORT_H
#define SF_FRONT_IMPORT_H

#include "front/text_module.h"

typedef struct sf_import_options {
    int64_t unroll; /* loops of up to this many iterations are unrolled; 0 for none */
    int64_t
        unroll_ops; /* so are some that are up to eight times longer, if they become no more than this many ops */
    int64_t most_nodes;  /* no more nodes than this come out */
    const char *sidecar; /* text of NAME.json, or NULL */
    const char *sidecar_file;
    const char *state;         /* links by hand, see front/roles_and_state.h, or NULL */
    bool strict;               /* a guess against what is known is an error, not a warning */
    int64_t assume_trip_count; /* of loops whose number cannot be known; 0: not known */
} sf_import_options;

enum { SF_UNROLL_DEFAULT = 256, SF_UNROLL_OPS = 100000, SF_MOST_NODES_DEFAULT = 4000000 };

/* The graph retains the module's pool; the module may be freed afterwards. */
sf_status sf_import(const sf_module *module, const sf_import_options *options, sf_diag *diag,
                    sf_graph **out);

#endif
