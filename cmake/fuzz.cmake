# fuzz/NAME_fuzz.c becomes the libFuzzer executable NAME_fuzz. With SF_SEEDS the library does not count what is
# covered: seeds can be replayed, but no others be found.

file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/*_fuzz.c)
foreach(source IN LISTS fuzz_sources)
    cmake_path(GET source STEM target)
    add_executable(${target} ${source} test/support/json_tree.c)
    target_include_directories(${target} PRIVATE test)
    target_link_libraries(${target} PRIVATE sheaf_static)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
endforeach()
