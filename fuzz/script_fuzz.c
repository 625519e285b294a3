/* Run a schedule. Whatever it says, it ends, within its limits, with at most one message for what is wrong; what it has applied makes a
 * plan or does not, and can be undone. */
#include <stdint.h>

#include "base/diag.h"
#include "base/mem.h"
#include "outcome.h"
#include "sheaf/sheaf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char step[] =
    "func.func @main(%w: tensor<4x4xf32>, %x: tensor<2x4xf32>) -> tensor<2x4xf32> {\n"
    "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
    "(tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc(\"layer_0/dot\")\n"
    "%1 = stablehlo.tanh %0 : tensor<2x4xf32> loc(\"layer_0/tanh\")\n"
    "return %1 : tensor<2x4xf32>\n}\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sf_graph *graph; /* the same for all */
    sf_diag *diag = sf_diag_new();
    sf_primitives *list;
    sf_console *console;
    sf_script_options options = {.size = sizeof options,
                                 .instructions = 100000,
                                 .memory = 4 << 20,
                                 .seconds = 5,
                                 .ranks = 2};
    if (!graph && sf_load_text(step, sizeof step - 1, "step",
                               &(sf_load_options){.size = sizeof(sf_load_options), .state = "none"},
                               diag, &graph) != SF_OK)
        return 0;
    if (sf_primitives_new(graph, diag, &list) == SF_OK &&
        sf_console_new("fuzz", &options, list, diag, &console) == SF_OK) {
        sf_status status = sf_console_run(console, (const char *)data, size, diag);
        fuzz_check_outcome(status, diag);
        sf_console_free(console);
        sf_plan *plan = NULL;
        if (sf_primitives_pin(list, &(sf_plan_spec){.size = sizeof(sf_plan_spec), .ranks = 2}, NULL,
                              &plan) == SF_OK)
            SF_ASSERT(sf_plan_check(plan, sf_primitives_graph(list), 0, NULL) == SF_OK);
        sf_plan_free(plan);
        while (sf_primitives_count(list) > 0)
            SF_ASSERT(sf_primitives_undo(list, -1, NULL) == SF_OK);
        sf_primitives_free(list);
    }
    sf_diag_free(diag);
    return 0;
}
