# Matrix products. The kernels, src/run/gemm/*.c, are one text that is compiled for several instruction
# sets; which one runs is decided when the program starts. -ffp-contract=fast: a product and a sum
# become one instruction, rounded once.

set(gemm_flags -O3 -ffp-contract=fast)
set(gemm_sets base avx2 avx512 avx512_bf16 amx neon_bf16 sve256 sve512)
foreach(set IN LISTS gemm_sets)
    set(gemm_flags_${set} ${gemm_flags})
endforeach()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    list(APPEND gemm_flags_avx2 -mavx2 -mfma)
    list(APPEND gemm_flags_avx512 -mavx512f -mfma)
    list(APPEND gemm_flags_avx512_bf16 -mfma -mavx512f -mavx512bw -mavx512vl -mavx512bf16)
    list(APPEND gemm_flags_amx -mfma -mavx512f -mavx512bw -mavx512vl -mamx-tile -mamx-bf16)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    list(APPEND gemm_flags_neon_bf16 -march=armv8.2-a+bf16)
endif()

# gcc makes SVE of vectors of a fixed size when the width is given; code for one width runs
# only where vectors have it. clang 14 warns, on the same text, of sizes that it cannot work out; so clang
# stays with NEON.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    include(CheckCCompilerFlag)
    check_c_compiler_flag("-march=armv8.2-a+sve -msve-vector-bits=256" SF_SVE_FLAGS)
endif()
if(SF_SVE_FLAGS)
    foreach(bits 256 512)
        set(sve${bits}_flags -march=armv8.2-a+sve -msve-vector-bits=${bits})
        list(APPEND gemm_flags_sve${bits} ${sve${bits}_flags})
    endforeach()
    set_source_files_properties(src/run/vec/isa.c src/run/gemm/gemm_kernel.c PROPERTIES
        COMPILE_DEFINITIONS SF_HAVE_SVE=1)
endif()
foreach(set IN LISTS gemm_sets)
    set_source_files_properties(src/run/gemm/gemm_${set}.c PROPERTIES
        COMPILE_OPTIONS "${gemm_flags_${set}}")
endforeach()

# A CBLAS can stand in for the kernels. SF_BLAS: none, openblas, blis, the path of a library, or auto,
# which follows measurements (docs/design/performance.md): on x86-64 our own are as fast as the best
# library and much faster than one that does not know the processor; elsewhere a library comes first.

set(SF_BLAS auto CACHE STRING "CBLAS for matrix products: auto, none, openblas, blis or a path")
set(SF_FEATURE_BLAS 0)
set(blas_names)
if(SF_BLAS STREQUAL "auto")
    if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
        set(blas_names blis openblas)
    endif()
elseif(NOT SF_BLAS STREQUAL "none")
    set(blas_names ${SF_BLAS})
endif()
foreach(name IN LISTS blas_names)
    if(IS_ABSOLUTE ${name})
        set(blas_library ${name})
    else()
        find_library(SF_LIBRARY_${name} ${name})
        mark_as_advanced(SF_LIBRARY_${name})
        set(blas_library ${SF_LIBRARY_${name}})
    endif()
    if(blas_library AND NOT SF_FEATURE_BLAS)
        include(CheckFunctionExists)
        include(CMakePushCheckState)
        cmake_push_check_state()
        set(CMAKE_REQUIRED_LIBRARIES ${blas_library})
        string(MAKE_C_IDENTIFIER "SF_CBLAS_IN_${blas_library}" found)
        check_function_exists(cblas_sgemm ${found})
        cmake_pop_check_state()
        if(${found})
            set(SF_FEATURE_BLAS 1)
            target_link_libraries(sheaf_dependencies INTERFACE ${blas_library})
            target_compile_definitions(sheaf_dependencies INTERFACE SF_HAVE_BLAS=1)
            string(PREPEND SF_PC_LIBS "${blas_library} ")
        endif()
    endif()
endforeach()
if(NOT SF_FEATURE_BLAS AND NOT SF_BLAS MATCHES "^(auto|none)$")
    message(FATAL_ERROR "SF_BLAS=${SF_BLAS}: no library with cblas_sgemm was found")
endif()
