# The files test/FOLDER/**/NAME_test.c become one program, build/test/FOLDER_tests, linked with the static library, with
# cmocka and with test/support. Each file is one ctest test, FOLDER/**/NAME, and a process of its own:
# "build/test/FOLDER_tests NAME". Each keeps its main: support/rename_main.h gives it another name, and a driver made here
# from support/driver.c.in calls it. test/cli/NAME.sh becomes cli/NAME; it exits with 77 to
# say that it was skipped. All run in the root of the source tree.
#
# Label "nightly", of what is left to `make nightly` whole: ctest -LE nightly is what `make check` runs. Other tests have a
# short version and a long one, which SHEAF_NIGHTLY=1 in the environment asks for (test/support/sanitized.h, cli.sh).
# Label "slow", of tests of more than SF_SLOW seconds: the check does not run them with sanitizers, with which they take four
# times as long and find what shorter tests of the same code find; nightly does.

set(SF_SLOW 1)

# Large steps, steps that are looked for beside the source tree, browsers, soaks, machines that are kept busy.
set(SF_NIGHTLY
    cli/cuda_calibrate cli/docs_site cli/interlaced cli/plan_large cli/plan_sweep cli/python_wheel cli/recycling cli/report_browser cli/shared_prices
    cli/shared_programs cli/shared_steps cli/soak cli/wait_busy run/cuda/attention_plain search/rediscovery)

# Never slow: what sanitizers are for. Files and schedules that mean harm, random instances of every op, one script of whole
# commands on ranks, and one test of each folder whose tests all take long.
set(SF_NEVER_SLOW
    api/mutated base/file cli/bombs cli/split run/conv/conv run/cpu/device run/gemm/gemm script/sandbox solve/search/local_search
    tune/tuner)

# What measures the machine runs alone; with sanitizers, nothing is measured that would mean anything.
set(SF_ALONE)
if(NOT SF_SANITIZE)
    set(SF_ALONE api/calibrate)
endif()

set(test_environment
    SHEAF_BIN=${CMAKE_BINARY_DIR}/sheaf
    SHEAF_SOURCE=${CMAKE_SOURCE_DIR}
    SHEAF_BUILD=${CMAKE_BINARY_DIR}
    SHEAF_SANITIZE=${SF_SANITIZE}
    # What tests expect is the same on machines with and without a GPU; those of GPUs ask for it.
    SHEAF_ENGINE=cpu
    # A test may ask for more memory than there is, and then wants NULL.
    ASAN_OPTIONS=allocator_may_return_null=1
    # MPI's own code is not instrumented; a process may end without threads that never come back.
    TSAN_OPTIONS=allocator_may_return_null=1:ignore_noninstrumented_modules=1:detect_deadlocks=0:report_thread_leaks=0
    UBSAN_OPTIONS=print_stacktrace=1)
if(SF_SANITIZE MATCHES address)
    # glibc keeps what threads that have ended stood on, which test/support/sanitize/leaks.c would take for a leak.
    list(APPEND test_environment GLIBC_TUNABLES=glibc.pthread.stack_cache_size=0)
endif()

function(sf_add_test name)
    add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES
        ENVIRONMENT "${test_environment}"
        SKIP_RETURN_CODE 77
        TIMEOUT 900)
endfunction()

# A library in the place of NCCL, for tests of the engine cuda on the host.
add_library(sheaf_fake_nccl MODULE test/support/fake/nccl.c)
target_include_directories(sheaf_fake_nccl PRIVATE src include test)
set_target_properties(sheaf_fake_nccl PROPERTIES
    OUTPUT_NAME fake_nccl
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/support)

# A library in the place of a GPU, which SHEAF_CUDA names: kernels are compiled for the host and run there. It has its own copy of
# what it takes of the library.
add_library(sheaf_emulator MODULE
    test/emulator/emulator.c test/emulator/emulate_conv.c test/emulator/emulate_streams.c)
target_include_directories(sheaf_emulator PRIVATE test)
target_link_libraries(sheaf_emulator PRIVATE sheaf_static)
target_link_options(sheaf_emulator PRIVATE -Wl,--exclude-libs,ALL)
set_target_properties(sheaf_emulator PROPERTIES
    OUTPUT_NAME emulator
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/support)
set(emulator ${CMAKE_BINARY_DIR}/test/support/libemulator.so)

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS test/*_test.c)
file(GLOB support_sources CONFIGURE_DEPENDS test/support/*.c)
list(FILTER support_sources EXCLUDE REGEX "_test\\.c$")
find_path(SF_CMOCKA_INCLUDE cmocka.h)
find_library(SF_CMOCKA_LIBRARY cmocka)
mark_as_advanced(SF_CMOCKA_INCLUDE SF_CMOCKA_LIBRARY)

if(SF_CMOCKA_INCLUDE AND SF_CMOCKA_LIBRARY)
    add_library(sheaf_test_support INTERFACE)
    target_include_directories(sheaf_test_support INTERFACE test)
    target_include_directories(sheaf_test_support SYSTEM INTERFACE ${SF_CMOCKA_INCLUDE})
    target_link_libraries(sheaf_test_support INTERFACE sheaf_static ${SF_CMOCKA_LIBRARY})
    set(test_libraries sheaf_test_support)
    if(support_sources)
        add_library(sheaf_test_code STATIC ${support_sources})
        target_link_libraries(sheaf_test_code PUBLIC sheaf_test_support)
        target_compile_definitions(sheaf_test_code PRIVATE SF_EMULATOR="${emulator}")
        add_dependencies(sheaf_test_code sheaf_emulator)
        set(test_libraries sheaf_test_code)
        if(SF_HAVE_CBC)
            target_compile_definitions(sheaf_test_code PRIVATE SF_HAVE_CBC=1)
            target_link_libraries(sheaf_test_code PUBLIC ${SF_CBC_LIBRARIES})
        endif()
    endif()
    set(leak_objects)
    if(SF_SANITIZE MATCHES address)
        add_library(sheaf_test_leaks OBJECT test/support/sanitize/leaks.c)
        set(leak_objects $<TARGET_OBJECTS:sheaf_test_leaks>)
        add_executable(test_support_leaking test/support/sanitize/leaking.c ${leak_objects})
        sf_add_test(support/leaking test_support_leaking)
        set_tests_properties(support/leaking PROPERTIES PASS_REGULAR_EXPRESSION "1 byte.s. leaked in 1 allocation")
    endif()
    set(folders)
    foreach(source IN LISTS test_sources)
        cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/test OUTPUT_VARIABLE path)
        string(REGEX REPLACE "_test\\.c$" "" name ${path})
        if(SF_TESTS AND NOT name IN_LIST SF_TESTS)
            continue()
        endif()
        string(REGEX REPLACE "/.*" "" folder ${path})
        cmake_path(RELATIVE_PATH name BASE_DIRECTORY ${folder} OUTPUT_VARIABLE file)
        string(MAKE_C_IDENTIFIER "test_main_${name}" main)
        list(APPEND folders ${folder})
        list(APPEND sources_${folder} ${source})
        string(APPEND declarations_${folder} "int ${main}(void);\n")
        string(APPEND table_${folder} "    {\"${file}\", ${main}},\n")
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS TEST_MAIN=${main})
        sf_add_test(${name} test_${folder} ${file})
    endforeach()
    list(REMOVE_DUPLICATES folders)
    foreach(folder IN LISTS folders)
        set(driver ${CMAKE_BINARY_DIR}/test/${folder}_tests.c)
        set(TEST_DECLARATIONS "${declarations_${folder}}")
        set(TEST_TABLE "${table_${folder}}")
        configure_file(test/support/driver.c.in ${driver} @ONLY)
        add_executable(test_${folder} ${driver} ${sources_${folder}} ${leak_objects})
        set_property(SOURCE ${sources_${folder}} APPEND PROPERTY
            COMPILE_OPTIONS -include ${CMAKE_SOURCE_DIR}/test/support/rename_main.h)
        if(NOT SF_QUICK AND NOT SF_SANITIZE) # tests compile faster so, and spend their time in the library
            set_property(SOURCE ${sources_${folder}} APPEND PROPERTY COMPILE_OPTIONS -O1)
        endif()
        target_link_libraries(test_${folder} PRIVATE ${test_libraries})
        if(SF_LLD)
            target_link_options(test_${folder} PRIVATE -fuse-ld=lld)
        endif()
        set_target_properties(test_${folder} PROPERTIES
            OUTPUT_NAME ${folder}_tests
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
    endforeach()
    # What is declared of NCCL is held against its header, where that is there.
    find_path(SF_NCCL_INCLUDE nccl.h PATHS /usr/local/cuda/include)
    find_path(SF_CUDA_INCLUDE cuda_runtime.h PATHS /usr/local/cuda/include)
    mark_as_advanced(SF_NCCL_INCLUDE SF_CUDA_INCLUDE)
    if(TARGET test_run)
        add_dependencies(test_run sheaf_fake_nccl)
        target_sources(test_run PRIVATE test/emulator/emulate_conv.c)
    endif()
    if(SF_NCCL_INCLUDE AND SF_CUDA_INCLUDE)
        set_property(SOURCE test/run/cuda/nccl_test.c APPEND PROPERTY COMPILE_OPTIONS
            -isystem ${SF_NCCL_INCLUDE} -isystem ${SF_CUDA_INCLUDE} -DSF_HAVE_NCCL_H=1)
    endif()
    if(NOT SF_TESTS)
        # The device test, on the kernels of the cuda engine, which the compiler of the system makes run on the host, and which check
        # each access to memory.
        sf_add_test(run/cuda/device test_run cpu/device)
        set_tests_properties(run/cuda/device PROPERTIES ENVIRONMENT
            "${test_environment};SHEAF_CUDA=${emulator};SHEAF_CUDA_CHECK=1;SHEAF_DEVICE_ENGINE=cuda")
        # Attention also as GPUs without groups of warps compute it.
        sf_add_test(run/cuda/attention_plain test_run cuda/attention)
        set_tests_properties(run/cuda/attention_plain PROPERTIES ENVIRONMENT
            "${test_environment};SHEAF_CUDA=${emulator},sm_80")
    endif()
elseif(test_sources)
    message(NOTICE "cmocka was not found: the tests written in C are not built")
endif()

# Writes large steps for tests of the planner.
add_executable(test_gpt_step test/support/steps/gpt_step.c)
target_link_libraries(test_gpt_step PRIVATE m)
set_target_properties(test_gpt_step PROPERTIES OUTPUT_NAME gpt_step RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)

file(GLOB cli_tests CONFIGURE_DEPENDS test/cli/*.sh)
find_program(SF_BASH bash)
mark_as_advanced(SF_BASH)
if(SF_BASH AND cli_sources)
    # Scripts start hundreds of processes. Except on x86-64, the leak checker walks a table of the whole address space
    # as each ends, which takes three seconds: there it looks at the tests written in C alone.
    if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        list(TRANSFORM test_environment REPLACE "^ASAN_OPTIONS=" "ASAN_OPTIONS=detect_leaks=0:")
    endif()
    foreach(script IN LISTS cli_tests)
        cmake_path(GET script STEM name)
        if(SF_TESTS AND NOT cli/${name} IN_LIST SF_TESTS)
            continue()
        endif()
        sf_add_test(cli/${name} ${SF_BASH} ${script})
    endforeach()
elseif(cli_tests)
    message(NOTICE "no bash or no command line: the tests in test/cli are not registered")
endif()

foreach(name IN LISTS SF_NIGHTLY)
    if(TEST ${name})
        set_property(TEST ${name} APPEND PROPERTY LABELS nightly)
    endif()
endforeach()

foreach(name IN LISTS SF_ALONE)
    if(TEST ${name})
        set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
    endif()
endforeach()

# The slowest first, so that in the end no processor waits for one that began late. test/times.txt has what they took,
# "SECONDS NAME" by line; scripts/time-tests writes it.
set(times ${CMAKE_SOURCE_DIR}/test/times.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${times})
file(STRINGS ${times} lines)
foreach(line IN LISTS lines)
    string(REGEX MATCH "^([0-9.]+) (.+)$" found "${line}")
    if(TEST "${CMAKE_MATCH_2}")
        set(seconds ${CMAKE_MATCH_1})
        set(name ${CMAKE_MATCH_2})
        set_tests_properties(${name} PROPERTIES COST ${seconds})
        if(seconds GREATER SF_SLOW AND NOT name IN_LIST SF_NEVER_SLOW)
            set_property(TEST ${name} APPEND PROPERTY LABELS slow)
        endif()
    endif()
endforeach()
