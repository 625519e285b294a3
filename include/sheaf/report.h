/* Reports for people and for machines: a step, and the tables of the library. */
#ifndef SHEAF_REPORT_H
#define SHEAF_REPORT_H

#include <stddef.h>

#include "sheaf/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sf_show_options {
    size_t size;      /* sizeof this struct, see api.h */
    const char *file; /* where the step came from, to be shown; NULL: not shown */
    bool json;        /* for machines: all of it, whatever the options below say */
    bool all;         /* every argument, op and scope, nothing cut short or folded */
    int depth;        /* levels of scopes; 0: 3 */
    int width;        /* columns to fit into; 0: as wide as it gets */
    bool colour;
} sf_show_options;

/* Describes the step: arguments by role, results, state, cost by op, phase and scope.
 * docs/reference/cli.md describes the JSON. */
SF_API sf_status sf_show(const sf_graph *graph, const sf_show_options *options,
                         const sf_output *output, sf_diag *diag);

/* Writes the program that the step is lowered to for one device: a line per instruction with its kind,
 * shapes, buffers and scope, and the memory it needs. */
SF_API sf_status sf_show_program(const sf_graph *graph, const sf_output *output, sf_diag *diag);

/* Writes the table of ops as Markdown; docs/reference/ops.md is its output. */
SF_API sf_status sf_show_ops(const sf_output *output, sf_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
