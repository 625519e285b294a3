# The vector kernels, src/run/vec, are one text that is compiled for several instruction sets; which one
# runs is decided when the program starts. Without a rule for the architecture there is the base set.
# -O3 and the two -fno- flags let both compilers make vectors of plain loops; no result changes by them.

set(vector_flags -O3 -fno-math-errno -fno-trapping-math)
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    list(APPEND vector_flags -Wno-pass-failed) # with sanitizers it cannot, and would say so
endif()
set(vector_flags_base ${vector_flags})
set(vector_flags_avx2 ${vector_flags})
set(vector_flags_avx512 ${vector_flags})
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    list(APPEND vector_flags_avx2 -mavx2 -mfma -mf16c)
    list(APPEND vector_flags_avx512 -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl
        -mprefer-vector-width=512)
endif()
set(vector_flags_sve256 ${vector_flags} ${sve256_flags})
set(vector_flags_sve512 ${vector_flags} ${sve512_flags})
foreach(set base avx2 avx512 sve256 sve512)
    set_source_files_properties(src/run/vec/vec_${set}.c PROPERTIES
        COMPILE_OPTIONS "${vector_flags_${set}}")
endforeach()

# Message passing, moves over trees and numbers that are drawn are plain loops as well.
set_source_files_properties(src/solve/dual/dual.c src/solve/dual/tables.c src/solve/search/tree.c
    src/base/rng.c src/train/random_draw.c
    PROPERTIES COMPILE_OPTIONS "${vector_flags}")
