#include "api/verify/findings.h"

#include <math.h>

#include "api/verify/compare.h"
#include "run/comm/rank_agreement.h"

/* A difference as it goes to the other ranks. */
enum { ERROR, INDEX, OURS, THEIRS, BEFORE, TOLERANCE, UNSTABLE, EXCUSED, DIFFERS, STEP, FIELDS };

/* After the differences. */
enum { LOSS_ERROR, LOSS_TOLERANCE, LOSS_FIELDS };

static void pack(const sf_difference *from, double *to)
{
    to[ERROR] = from->error;
    to[INDEX] = (double)from->index;
    to[OURS] = from->ours;
    to[THEIRS] = from->theirs;
    to[BEFORE] = from->before;
    to[TOLERANCE] = from->tolerance;
    to[UNSTABLE] = (double)from->unstable;
    to[EXCUSED] = (double)from->excused;
    to[DIFFERS] = from->differs;
    to[STEP] = from->step;
}

static void unpack(const double *from, sf_difference *to)
{
    to->error = from[ERROR];
    to->index = (int64_t)from[INDEX];
    to->ours = from[OURS];
    to->theirs = from[THEIRS];
    to->before = from[BEFORE];
    to->tolerance = from[TOLERANCE];
    to->unstable = (int64_t)from[UNSTABLE];
    to->excused = (int64_t)from[EXCUSED];
    to->differs = from[DIFFERS] != 0;
    to->step = (int)from[STEP];
}

bool sf_finding_is_worse(sf_finding a, sf_finding b)
{
    return a.error * b.tolerance > b.error * a.tolerance;
}

sf_finding sf_worst_loss(int count, const double *losses, const double *expected,
                         const double *noise, double plain)
{
    sf_finding worst = {.tolerance = plain};
    double so_far = 0;
    for (int i = 0; i < count; i++) {
        so_far = fmax(so_far, noise[i]);
        sf_finding next = {sf_relative_error(losses[i], expected[i], 0x1p-126),
                           fmax(plain, SF_LOSS_NOISE_FACTOR * so_far)};
        if (sf_finding_is_worse(next, worst))
            worst = next;
    }
    return worst;
}

void sf_keep_worse(sf_difference *worst, const sf_difference *next)
{
    sf_difference kept = sf_badness(next) > sf_badness(worst) ? *next : *worst;
    kept.unstable = next->unstable > worst->unstable ? next->unstable : worst->unstable;
    kept.excused = next->excused > worst->excused ? next->excused : worst->excused;
    kept.differs = next->differs || worst->differs;
    *worst = kept;
}

static void merge_rank(int rank, const double *found, const sf_difference *mine,
                       sf_verify_report *report)
{
    for (int i = 0; i < report->nresults; i++, found += FIELDS) {
        sf_difference *worst = report->results[i];
        sf_difference next = {
            .size = sizeof next, .name = worst->name, .rank = rank, .is_weight = mine[i].is_weight};
        unpack(found, &next);
        if (rank == 0)
            *worst = next;
        sf_keep_worse(worst, &next);
    }
    sf_finding loss = {found[LOSS_ERROR], found[LOSS_TOLERANCE]};
    sf_finding so_far = {report->loss_error, report->loss_tolerance};
    if (rank == 0 || sf_finding_is_worse(loss, so_far)) {
        report->loss_error = loss.error;
        report->loss_tolerance = loss.tolerance;
    }
}

static void find_worst(sf_verify_report *report)
{
    for (int i = 0; i < report->nresults; i++)
        if (report->worst < 0 ||
            sf_badness(report->results[i]) > sf_badness(report->results[report->worst]))
            report->worst = i;
}

sf_status sf_findings_share(sf_comm *comm, uint32_t count, const sf_difference *mine,
                            sf_finding loss, sf_arena *scratch, sf_diag *diag,
                            sf_verify_report *report)
{
    size_t each = (size_t)count * FIELDS + LOSS_FIELDS;
    double *packed = SF_ARRAY(scratch, each, double);
    double *found = SF_ARRAY(scratch, each * (size_t)sf_comm_size(comm), double);
    for (uint32_t i = 0; i < count; i++)
        pack(&mine[i], packed + (size_t)i * FIELDS);
    packed[each - LOSS_FIELDS + LOSS_ERROR] = loss.error;
    packed[each - LOSS_FIELDS + LOSS_TOLERANCE] = loss.tolerance;
    SF_TRY(sf_agree_gather(comm, packed, each, "what the ranks found", diag, found));
    if (!report)
        return SF_OK;
    for (int rank = 0; rank < report->ranks; rank++)
        merge_rank(rank, found + (size_t)rank * each, mine, report);
    find_worst(report);
    return SF_OK;
}
