# The page of sheaf report lives in plain files, which the library carries with it.

set(page_folder ${CMAKE_SOURCE_DIR}/src/report/page)
set(page_scripts base.js timeline.js charts.js tree.js)
list(TRANSFORM page_scripts PREPEND ${page_folder}/)
list(JOIN page_scripts "," page_script)
set(page_files
    sf_page_frame=${page_folder}/page.html
    sf_page_style=${page_folder}/page.css
    sf_page_script=${page_script})
set(page_source ${CMAKE_BINARY_DIR}/page_files.c)
add_custom_command(OUTPUT ${page_source}
    COMMAND ${CMAKE_COMMAND} -D OUT=${page_source} -D HEADER=report/page/page_html.h
        -D "FILES=${page_files}" -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${page_folder}/page.html ${page_folder}/page.css ${page_scripts}
        ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
