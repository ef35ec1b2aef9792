#!/bin/sh
# Runs zeusm's tests on Intel's own driver over a simulated GPU: test_intel.sh LAUNCHER ROOT MACHINE...
#
# Each file of Python tests has a process of its own: where the driver ends it, the others go on. The Rust tests have been
# built on this machine and run in the root.
set -u
launcher=$1 root=$2
shift 2
here=$(pwd)
python=/opt/venv/bin/python
failed=

# A driver that waits for ever is a failure, too.
in_root() { # in_root <machine> <command>...
	machine=$1
	shift
	XE_SIM_KERNELS=skip timeout -k 10 300 "$launcher" "$root" "$machine" --bind "$here" -- \
		env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root "$@"
}

python_tests() { # python_tests <machine> <file>
	echo "--- $1: $2"
	in_root "$1" PYTHONPATH="$here/tests/intel" $python -m pytest -c "$here/pyproject.toml" -p on_the_simulator \
		-p no:cacheprovider -q --tb short --timeout 120 "$here/$2"
	code=$?
	# 5: no test in it can run here.
	[ $code = 0 ] || [ $code = 5 ] || failed="$failed $1:$2($code)"
}

# What Intel's driver does not survive, or answers in another way:
# too_much_is_an_error...: host sizes from 2**46 on end the process.
# a_failed_operation...: a null pointer is not refused but used.
# a_handle..., a_pools_memory..., another_process..., what_is_freed..., where_tracing...: an opened host handle is closed by the driver as
#   well, and opened shared memory is device memory.
# a_pointer_is_known..., allocations_outlive...: pointers are known in every context.
rust_tests() { # rust_tests <machine> <program>
	echo "--- $1: $2"
	in_root "$1" ZEUSM_TEST_MODE=loader ZEUSM_RUNTIME=system "$2" \
		--skip too_much_is_an_error_that_says_what_was_asked \
		--skip a_failed_operation_says_what_it_was \
		--skip a_handle_says_what_it_is_of \
		--skip a_pools_memory_is_shared_and_freed_piece_by_piece \
		--skip another_process_sees_and_changes_a_range \
		--skip what_is_freed_opens_no_more \
		--skip where_tracing_is_forbidden_the_socket_serves \
		--skip a_pointer_is_known_as_its_own_allocation_and_not_the_slab \
		--skip allocations_outlive_context_and_pool ||
		failed="$failed $1:$(basename "$2")"
}

programs=$(cargo test --locked --no-run --test asynchronous --test between --test ipc --test memory --test pool \
	--test queue --test runtime --message-format short 2>&1 | sed -n 's/.*Executable.*(\(.*\))$/\1/p')
[ -n "$programs" ] || { echo "the Rust tests do not build" >&2; exit 1; }

for machine; do
	python_tests "$machine" tests/intel
	for file in tests/python/test_*.py; do
		python_tests "$machine" "$file"
	done
	for program in $programs; do
		case $program in
		/*) rust_tests "$machine" "$program" ;;
		*) rust_tests "$machine" "$here/$program" ;;
		esac
	done
done

[ -z "$failed" ] && exit 0
echo "Failed:$failed" >&2
exit 1
