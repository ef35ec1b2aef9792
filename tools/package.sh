#!/bin/sh
# Packages and builds crates as `cargo publish` does, uploading nothing: package.sh <crate>...
set -eu
target=${CARGO_TARGET_DIR:-target}

# The bindings of this machine's headers go with the crate, for builds with DOCS_RS set.
bindings=$(cargo build -q --locked -p level-zero-sys --message-format=json |
    sed -n 's/.*"reason":"build-script-executed".*level-zero-sys.*"out_dir":"\([^"]*\)".*/\1/p')
mkdir -p sys/generated
cp "$bindings/bindings.rs" sys/generated/

selected=
for crate in "$@"; do selected="$selected -p $crate"; done
# shellcheck disable=SC2086 # Several words.
cargo publish --dry-run --locked --allow-dirty $selected

# As a documentation service: the packaged source, no headers. An empty folder stands for theirs.
mkdir -p "$target/empty"
export DOCS_RS=1 LEVEL_ZERO_INCLUDE_DIR="$target/empty" CARGO_TARGET_DIR="$target/docs-rs"
cargo doc --locked --no-deps -p level-zero-sys -p zeusm
