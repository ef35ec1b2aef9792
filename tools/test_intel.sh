#!/bin/sh
# Runs zeusm's tests on Intel's driver over a simulated GPU: test_intel.sh LAUNCHER ROOT MACHINE...
#
# Each Python test file runs in its own process, so that an abort in the driver does not stop the other files. The Rust
# tests are built on this machine and run in the root. Logs are written to target/intel; a summary is printed at the end.
set -u
launcher=$1 root=$2
shift 2
here=$(pwd)
python=/opt/venv/bin/python
logs=$here/target/intel
failed=

# The status of a command that needed what the simulator lacks. A test that expects its child process to die would hide it.
lacks=/run/xe-sim/not-simulated
checked='"$@"; code=$?; [ ! -e '$lacks' ] || { echo "Not simulated:"; cat '$lacks'; exit 70; }; exit $code'

# The timeout turns a hang in the driver into a failure.
in_root() { # in_root <machine> <command>...
	machine=$1
	shift
	XE_SIM_KERNELS=skip timeout -k 10 1200 "$launcher" "$root" "$machine" --bind "$here" -- \
		sh -c "$checked" sh env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root XDG_CACHE_HOME=/run/xe-sim/cache "$@"
}

selects() { # selects <name>: whether ONLY is empty or has a part of the name
	[ -n "${ONLY-}" ] || return 0
	for part in $ONLY; do
		case $1 in *"$part"*) return 0 ;; esac
	done
	return 1
}

run() { # run <machine> <name> <pattern of the summary line> <command>...
	machine=$1 name=$2 sum=$3
	shift 3
	selects "$name" || return 0
	short=$(echo "$name" | sed 's|^tests/||; s|^.*/deps/||; s|-[0-9a-f]\{16\}$||; s|/|-|g') # Without cargo's hash.
	log=$logs/$machine/$short.log
	passed=${log%.log}.passed
	[ -n "${RESUME-}" ] && [ -e "$passed" ] && return
	rm -f "$passed"
	in_root "$machine" "$@" > "$log" 2>&1
	code=$?
	printf '%s: %s: %s\n' "$machine" "$name" "$(grep "$sum" "$log" | tail -n 1)"
	# 5: pytest has collected no tests, because none in the file can run here.
	[ $code = 0 ] || [ $code = 5 ] && { touch "$passed"; return; }
	cat "$log"
	failed="$failed $machine:$short($code)"
}

pytest() { # pytest <machine> <name> <pattern of the summary line> <argument>...
	machine=$1 name=$2 sum=$3
	shift 3
	run "$machine" "$name" "$sum" PYTHONPATH="$here/tests/intel" $python -m pytest -c "$here/pyproject.toml" \
		-p on_the_simulator -p no:cacheprovider -q --tb short --timeout 300 -o faulthandler_timeout=600 "$@"
}

python_tests() { # python_tests <machine> <file>
	pytest "$1" "$2" ' in [0-9.]*s' "$here/$2"
}

# The listed tests are skipped in the main run. Each one then runs alone and must fail.
known=$here/tests/intel/known_in_rust.txt
known_names() { # known_names [<machine>]: those of the machine, or all
	awk -v machine="${1-}" '
		/^#/ { next }
		{ part = index($1, "/") }
		!part || !machine || substr($1, 1, part - 1) == machine { print substr($1, part + 1) }' "$known"
}

# The driver keeps freed allocations for reuse and still knows their addresses. This test passes without that cache.
uncached=level_zero::allocations_outlive_context_and_pool

has() { # has <program> <test>
	"$1" --list | grep -x "$2: test" > /dev/null # It reads the whole list, unlike `grep -q`.
}

rust_tests() { # rust_tests <machine> <program>
	skips="--skip $uncached $(known_names "$1" | sed 's/^/--skip /')"
	# The other tests of the pool use no driver.
	case $2 in */pool-*) skips="$skips level_zero::" ;; esac
	# shellcheck disable=SC2086 # The word splitting is intended.
	run "$1" "$2" '^test result' ZEUSM_TEST_MODE=loader ZEUSM_RUNTIME=system "$2" $skips
	if has "$2" "$uncached"; then
		run "$1" "uncached-$(basename "$2")" '^test result' ZEUSM_TEST_MODE=loader ZEUSM_RUNTIME=system \
			NEOReadDebugKeys=1 ExperimentalEnableSharedAllocationCache=0 "$2" --exact "$uncached"
	fi
	for name in $(known_names "$1"); do
		has "$2" "$name" || continue
		in_root "$1" ZEUSM_TEST_MODE=loader ZEUSM_RUNTIME=system "$2" --exact "$name" \
			>> "$logs/$1/known_in_rust.log" 2>&1 && failed="$failed $1:$name(passes)"
	done
}

# The tests with the widest API coverage also run without the loader, and with its validation layer.
driver=/usr/lib/x86_64-linux-gnu/libze_intel_gpu.so.1
rust_modes() { # rust_modes <machine> <program>
	case $2 in */memory-* | */queue-* | */asynchronous-* | */operands-* | */peer_copy-*) ;; *) return ;; esac
	run "$1" "direct-$(basename "$2")" '^test result' ZEUSM_TEST_MODE=loader ZEUSM_RUNTIME=$driver "$2"
	run "$1" "validated-$(basename "$2")" '^test result' ZEUSM_TEST_MODE=validated ZEUSM_RUNTIME=system \
		ZE_ENABLE_VALIDATION_LAYER=1 ZE_ENABLE_PARAMETER_VALIDATION=1 "$2"
}

# The device writes the time of an event's end in two halves, and the first one completes the event: here long before the second.
slow_events() { # slow_events <machine> <program>
	case $2 in */asynchronous-*) ;; *) return ;; esac
	run "$1" "slow-$(basename "$2")" '^test result' ZEUSM_TEST_MODE=loader ZEUSM_RUNTIME=system XE_SIM_SLOW=1 \
		"$2" --exact an_event_that_is_used_again_completes_with_its_operation \
		the_time_of_the_end_is_complete_with_the_operation
}

sums() { # sums <machine>: adds up the summary lines of pytest and cargo
	grep -hE --exclude=known_in_rust.log ' in [0-9.]+s|^test result' "$logs/$1"/*.log | tr -c 'a-z0-9\n' ' ' | awk -v machine="$1" '
		{ for (i = 2; i <= NF; i++) if ($(i - 1) ~ /^[0-9]+$/) count[$i] += $(i - 1) }
		END { printf "%s: %d passed, %d failed, %d xfailed, %d skipped\n", machine, count["passed"],
			count["failed"] + count["error"] + count["errors"], count["xfailed"], count["skipped"] + count["ignored"] }'
}

programs=$(cargo test --locked --no-run --test asynchronous --test ipc --test memory --test operands --test peer_copy --test pool \
	--test queue --test runtime --message-format short 2>&1 | sed -n 's/.*Executable.*(\(.*\))$/\1/p')
[ -n "$programs" ] || { echo "the Rust tests do not build" >&2; exit 1; }
programs=$(for program in $programs; do case $program in /*) echo "$program" ;; *) echo "$here/$program" ;; esac; done)

# A listed name without a test would hide that a test was renamed.
existing=$(for program in $programs; do "$program" --list; done) || exit 1
for name in $uncached $(known_names); do
	echo "$existing" | grep -qx "$name: test" || { echo "there is no test $name" >&2; exit 1; }
done

for machine; do
	[ -n "${RESUME-}${ONLY-}" ] || rm -rf "${logs:?}/$machine"
	mkdir -p "$logs/$machine"
	pytest "$machine" lists ' collected' --collect-only --check-lists "$here/tests/python"
	for file in tests/python/test_*.py tests/intel/test_*.py; do
		python_tests "$machine" "$file"
	done
	for program in $programs; do
		rust_tests "$machine" "$program"
		rust_modes "$machine" "$program"
		slow_events "$machine" "$program"
	done
done

for machine; do sums "$machine"; done
[ -z "$failed" ] && exit 0
echo "Failed:$failed" >&2
exit 1
