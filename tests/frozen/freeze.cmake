# cmake -Dtool=PATH -Dout=FOLDER -P freeze.cmake: writes the headers that the tests include.

# Writes the header and, beside it, the proof that its comment speaks of.
function(freeze file)
  execute_process(COMMAND "${tool}" schedule ${ARGN} --emit header -o "${out}/${file}.hpp"
    COMMAND_ERROR_IS_FATAL ANY)
  file(READ "${out}/${file}.hpp" text)
  if(NOT text MATCHES "//   (static_assert\\([^;]*;)")
    message(FATAL_ERROR "the header of ${file} says no proof")
  endif()
  string(REPLACE "//" "" proof "${CMAKE_MATCH_1}")
  file(WRITE "${out}/${file}.proof.hpp" "${proof}\n")
endfunction()

# Puts another word into a header's copy.
function(damage file meant put)
  file(READ "${out}/${file}.hpp" text)
  string(REPLACE "${meant}" "${put}" damaged "${text}")
  if(damaged STREQUAL text)
    message(FATAL_ERROR "the header of ${file} lacks what was to be damaged: ${meant}")
  endif()
  file(WRITE "${out}/damaged/${file}.hpp" "${damaged}")
endfunction()

file(REMOVE_RECURSE "${out}")
file(MAKE_DIRECTORY "${out}/damaged")
freeze(zb_auto_8x64 zb_auto --ranks 8 --microbatches 64)
freeze(zb_auto_5x13 zb_auto --ranks 5 --microbatches 13 --cost 7,9,4,2 --limit 6)
freeze(interleaved_zb_8x64x2 interleaved_zb --ranks 8 --microbatches 64 --chunks 2)
freeze(zbv_3x7x2 zbv --ranks 3 --microbatches 7 --chunks 2)
freeze(zbv_4x9x2 zbv --ranks 4 --microbatches 9 --cost 7,9,4,2 --whole-saves 3 --merge shortest)
freeze(zb_h1_2x3 zb_h1 --ranks 2 --microbatches 3 --layers 3,2)
# An order of one's own, from a file, under costs of one's own.
execute_process(COMMAND "${tool}" schedule zbv --ranks 3 --microbatches 4 --format csv
  -o "${out}/my order-2.csv" COMMAND_ERROR_IS_FATAL ANY)
freeze(from_file --csv "${out}/my order-2.csv" --cost 3,2,1,1 --limit 6)
# And one of which PyTorch has no form: two directions.
execute_process(COMMAND "${tool}" schedule dualpipe --ranks 2 --microbatches 4 --format cells
  -o "${out}/cells.csv" COMMAND_ERROR_IS_FATAL ANY)
freeze(from_cells --csv "${out}/cells.csv")

execute_process(COMMAND "${tool}" calibrate --machine "${CMAKE_CURRENT_LIST_DIR}/machine.json"
  --emit header -o "${out}/measured_host.hpp" COMMAND_ERROR_IS_FATAL ANY)

damage(zb_auto_8x64 "{3, W, 17}" "{3, W, 18}")
damage(zb_auto_5x13 "limit() const { return 6; }" "limit() const { return 5; }")
