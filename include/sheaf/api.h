/* What marks a function of the library that others may call: it is exported, all else is hidden. */
#ifndef SHEAF_API_H
#define SHEAF_API_H

#if defined(__GNUC__)
#define SF_API __attribute__((visibility("default")))
#else
#define SF_API
#endif

#endif
