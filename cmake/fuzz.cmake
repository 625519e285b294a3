# fuzz/NAME_fuzz.c becomes the libFuzzer executable NAME_fuzz. With SF_SEEDS the library does not count what is
# covered: what the mutator makes of seeds is run, but nothing is learnt from it.

add_library(fuzz_mutator OBJECT fuzz/custom_mutator.c test/support/mutate.c)
target_include_directories(fuzz_mutator PRIVATE test)
target_link_libraries(fuzz_mutator PRIVATE sheaf_static)
file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/*_fuzz.c)
foreach(source IN LISTS fuzz_sources)
    cmake_path(GET source STEM target)
    add_executable(${target} ${source} test/support/json_tree.c $<TARGET_OBJECTS:fuzz_mutator>)
    target_include_directories(${target} PRIVATE test)
    target_link_libraries(${target} PRIVATE sheaf_static)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
endforeach()
