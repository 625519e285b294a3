# Writes a C file with the bytes of files: cmake -D OUT=FILE.c -D HEADER=INCLUDED -D "FILES=NAME=PATH,...;..." -P embed.cmake
# Each name becomes `const sf_page_file NAME`, of the files one behind the other. Bytes are bytes, so neither compiler nor byte order matters.

set(text "#include \"${HEADER}\"\n")
foreach(pair IN LISTS FILES)
    string(REGEX MATCH "^([^=]+)=(.+)$" found "${pair}")
    set(name ${CMAKE_MATCH_1})
    string(REPLACE "," ";" paths "${CMAKE_MATCH_2}")
    set(bytes)
    foreach(path IN LISTS paths)
        file(READ ${path} more HEX)
        string(APPEND bytes "${more}")
    endforeach()
    string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${bytes}")
    string(APPEND text "\nstatic const unsigned char ${name}_bytes[] = {\n    ${bytes}};\n")
    string(APPEND text "const sf_page_file ${name} = {${name}_bytes, sizeof ${name}_bytes};\n")
endforeach()
file(WRITE ${OUT} "${text}")
