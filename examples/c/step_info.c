/* Reads a training step, says what it is, writes it as StableHLO, and checks it against known
 * values:
 *
 *     step_info STEP [OUTPUT [VALUES]]
 */
#include <inttypes.h>
#include <sheaf/sheaf.h>
#include <stdio.h>

static int give_up(sf_status status, sf_diag *diag)
{
    for (int i = 0; sf_diag_text(diag, i); i++)
        fprintf(stderr, "%s\n", sf_diag_text(diag, i));
    fprintf(stderr, "step_info: %s\n", sf_status_name(status));
    sf_diag_free(diag);
    return 1;
}

static bool print_progress(void *context, const sf_event *event)
{
    (void)context;
    printf("step %" PRId64 " of %" PRId64 ": loss %.6f\n", event->step, event->steps, event->loss);
    return true;
}

static sf_status verify(const sf_graph *step, const char *values, sf_diag *diag)
{
    sf_verify_options options = {
        .size = sizeof options, .against = values, .steps = 3, .listener = print_progress};
    sf_verify_report *report = NULL;
    sf_status status = sf_verify(step, &options, diag, &report);
    if (report)
        printf("%d results: %s\n", report->nresults, report->passed ? "as expected" : "WRONG");
    sf_verify_free(report);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: step_info STEP [OUTPUT [VALUES]]\n");
        return 2;
    }
    sf_diag *diag = sf_diag_new();
    sf_graph *step = NULL;
    sf_status status = sf_load(argv[1], NULL, diag, &step);
    if (status == SF_OK) {
        printf("sheaf %s, hash %016" PRIx64 "\n", sf_version(), sf_graph_hash(step));
        fflush(stdout);
        sf_show_options options = {.size = sizeof options, .file = argv[1], .depth = 1};
        status = sf_show(step, &options, NULL, diag);
    }
    if (status == SF_OK && argc > 2)
        status = sf_save_stablehlo(step, &SF_OPTIONS(sf_output, .path = argv[2]), diag);
    if (status == SF_OK && argc > 3)
        status = verify(step, argv[3], diag);
    sf_graph_free(step);
    if (status != SF_OK)
        return give_up(status, diag);
    sf_diag_free(diag);
    return 0;
}
