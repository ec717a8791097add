# Shared by measure and check_steps: how each compiler is called. Sourced by bash.

here=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)
include=$here/../../include

# define SCHEDULE SHAPE PART: the options that choose what step.cpp proves; SHAPE is 8x64, 8x64x2
# for 2 chunks, or 8x64x1x2 for 2 slices.
define() {
  local ranks microbatches chunks slices
  IFS=x read -r ranks microbatches chunks slices <<<"$2"
  local name=$1
  [[ $name == 1f1b ]] && name=one_f_one_b
  printf -- '-DSCHEDULE=%s -DRANKS=%d -DMICROBATCHES=%d -DCHUNKS=%d -DSLICES=%d -DPART=%d' \
    "$name" "$ranks" "$microbatches" "${chunks:-1}" "${slices:-1}" "$3"
}

# compile COMPILER OPTION...: whether step.cpp compiles; under the compiler's own limits.
compile() {
  local command=$1
  shift
  case $command in
    *nvcc*) "$command" -std=c++20 -x cu -c -o /dev/null "-I$include" "$@" "$here/step.cpp" ;;
    *) "$command" -std=c++20 -fsyntax-only "-I$include" "$@" "$here/step.cpp" ;;
  esac >/dev/null 2>&1
}

# no_limits COMPILER: options that let it prove any shape.
no_limits() {
  local most=1000000000
  case $1 in
    *nvcc*) printf -- '-Xcudafe --max_cost_constexpr_call=%d ' "$most"
            printf -- '-Xcompiler -fconstexpr-ops-limit=%d,-fconstexpr-loop-limit=%d' $most $most ;;
    *clang*) printf -- '-fconstexpr-steps=%d' "$most" ;;
    *) printf -- '-fconstexpr-ops-limit=%d -fconstexpr-loop-limit=%d' "$most" "$most" ;;
  esac
}

# limit COMPILER COUNT: the option that stops a constant which costs more than COUNT.
limit() {
  case $1 in
    *clang*) printf -- '-fconstexpr-steps=%d' "$2" ;;
    *) printf -- '-fconstexpr-ops-limit=%d' "$2" ;;
  esac
}

# largest_constant COMPILER OPTION...: the smallest limit, to 2 %, under which all constants of
# step.cpp are evaluated: what its costliest one counts. Empty when step.cpp does not compile.
largest_constant() {
  local command=$1 low=0 high=1000000000 middle
  shift
  compile "$command" "$(limit "$command" $high)" "$@" || return 0
  # Up from small limits, at which a compiler gives up early.
  for ((middle = 16384; middle < high; middle *= 4)); do
    if compile "$command" "$(limit "$command" "$middle")" "$@"; then high=$middle; else low=$middle; fi
  done
  while ((high - low > high / 50)); do
    middle=$(((low + high) / 2))
    if compile "$command" "$(limit "$command" "$middle")" "$@"; then high=$middle; else low=$middle; fi
  done
  printf '%d' "$high"
}
