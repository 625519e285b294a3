#include "train/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

struct sf_mapping {
    struct sf_mapping *next;
    void *at;
    size_t length;
};

static sf_status map_file(int fd, struct sf_mapping *mapping, sf_loc loc, sf_diag *diag)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return sf_fail(diag, sf_status_of_errno(), loc, "cannot read: %s", strerror(errno));
    if (!S_ISREG(info.st_mode))
        return sf_fail(diag, SF_EIO, loc, "is no regular file");
    if ((uint64_t)info.st_size >= SIZE_MAX / 2)
        return sf_fail(diag, SF_ENOMEM, loc, "is too large for this machine");
    mapping->length = (size_t)info.st_size;
    if (mapping->length == 0)
        return SF_OK;
    void *at = mmap(NULL, mapping->length, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        return sf_fail(diag, sf_status_of_errno(), loc, "cannot map it: %s", strerror(errno));
    mapping->at = at;
    return SF_OK;
}

sf_status sf_mappings_add(sf_mappings *mappings, const char *path, sf_str *out, sf_diag *diag)
{
    sf_loc loc = {path, 0, 0};
    struct sf_mapping *mapping = sf_alloc_kept(sizeof *mapping);
    if (!mapping)
        return sf_fail(diag, SF_ENOMEM, loc, "no memory left to read it");
    /* A pipe is refused below; opening it must not wait for its other end. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    sf_status status = SF_OK;
    if (fd < 0)
        status = sf_fail(diag, sf_status_of_errno(), loc, "cannot open: %s", strerror(errno));
    else
        status = map_file(fd, mapping, loc, diag);
    if (fd >= 0)
        close(fd);
    if (status != SF_OK) {
        sf_free(mapping);
        return status;
    }
    mapping->next = mappings->newest;
    mappings->newest = mapping;
    *out = (sf_str){mapping->at ? mapping->at : "", mapping->length};
    return SF_OK;
}

void sf_mappings_close(sf_mappings *mappings)
{
    while (mappings->newest) {
        struct sf_mapping *mapping = mappings->newest;
        mappings->newest = mapping->next;
        if (mapping->at)
            munmap(mapping->at, mapping->length);
        sf_free(mapping);
    }
}
