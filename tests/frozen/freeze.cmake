# cmake -Dtool=PATH -Dout=FOLDER -P freeze.cmake: writes the headers that the tests include.

function(freeze file)
  execute_process(COMMAND "${tool}" schedule ${ARGN} --emit header -o "${out}/${file}.hpp"
    COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${out}")
file(MAKE_DIRECTORY "${out}/damaged")
freeze(zb_auto_8x64 zb_auto --ranks 8 --microbatches 64)
freeze(zb_auto_5x13 zb_auto --ranks 5 --microbatches 13 --cost 7,9,4,2 --limit 6)
freeze(interleaved_zb_8x64x2 interleaved_zb --ranks 8 --microbatches 64 --chunks 2)
freeze(zbv_3x7x2 zbv --ranks 3 --microbatches 7 --chunks 2)

execute_process(COMMAND "${tool}" calibrate --machine "${CMAKE_CURRENT_LIST_DIR}/machine.json"
  --emit header -o "${out}/measured_host.hpp" COMMAND_ERROR_IS_FATAL ANY)

file(READ "${out}/zb_auto_8x64.hpp" text)
string(REPLACE "{3, W, 17}" "{3, W, 18}" damaged "${text}")
if(damaged STREQUAL text)
  message(FATAL_ERROR "the header lacks the entry that was to be damaged")
endif()
file(WRITE "${out}/damaged/zb_auto_8x64.hpp" "${damaged}")
