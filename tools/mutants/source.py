"""A copy of the sources in which an environment variable chooses the mutant that runs."""

import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess

# The crate that all others use.
LIBRARY = "process/src/lib.rs"
SWITCH = """
/// Which mutant runs. `MUTANT` has its number; with `MUTANTS_REACHED`, each one that is reached is added to that file.
#[doc(hidden)]
pub mod mutants {
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, Ordering};

    static CHOSEN: AtomicI32 = AtomicI32::new(-1);
    /// A byte for each mutant, in the file's pages: tests limit files and descriptors, and signal handlers and forks get here.
    static REACHED: AtomicPtr<AtomicU8> = AtomicPtr::new(std::ptr::null_mut());

    #[used]
    #[unsafe(link_section = ".init_array")]
    static INIT: extern "C" fn() = {
        extern "C" fn init() {
            if let Some(number) = std::env::var("MUTANT").ok().and_then(|it| it.parse().ok()) {
                CHOSEN.store(number, Ordering::Relaxed);
            } else if let Ok(path) = std::env::var("MUTANTS_REACHED") {
                let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
                let access = libc::PROT_READ | libc::PROT_WRITE;
                let pages = unsafe {
                    libc::mmap(std::ptr::null_mut(), 1 << 14, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
                };
                REACHED.store(pages.cast(), Ordering::Relaxed);
                CHOSEN.store(-2, Ordering::Relaxed);
            }
        }
        init
    };

    #[inline]
    pub fn on(number: u16) -> bool {
        let chosen = CHOSEN.load(Ordering::Relaxed);
        if chosen == -2 {
            unsafe { (*REACHED.load(Ordering::Relaxed).add(number as usize)).store(1, Ordering::Relaxed) };
        }
        chosen == i32::from(number)
    }
}
"""


class Tree:
    """The sources with all mutants, and their test programs. Those that do not compile are `invalid`."""

    def __init__(self, root, target, mutants):
        self.root, self.target, self.mutants = root, target, mutants
        self.sources = target / "tree"
        self.invalid = set()
        self.programs = []

    def build(self):
        """Writes the sources and builds the tests, until no mutant is left that does not compile."""
        self.copy()
        while True:
            places = self.write()
            wrong = self.compile(places)
            if not wrong:
                return
            self.invalid |= wrong

    def numbering(self):
        """Tells whether numbers mean the same mutants as at another time."""
        names = [mutant["name"] for mutant in self.mutants]
        return hashlib.sha256(json.dumps(names).encode()).hexdigest()

    def copy(self):
        """Copies files that have changed, as cargo looks at their times. Those with mutants are written later."""
        written = {LIBRARY} | {mutant["file"] for mutant in self.mutants}
        names = subprocess.run(
            ["git", "ls-files", "-z"], cwd=self.root, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.split("\0")
        for name in filter(None, names):
            source, copy = self.root / name, self.sources / name
            unchanged = copy.is_file() and (name in written or same(source, copy))
            if source.is_file() and not unchanged:
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy)

    def write(self):
        """Writes the files with mutants; returns the lines of each as `(file, first, last, number)`."""
        by_file = {mutant["file"]: [] for mutant in self.mutants}
        for number, mutant in enumerate(self.mutants):
            if number not in self.invalid:
                by_file[mutant["file"]].append((number, mutant))
        places = []
        for file, mutants in by_file.items():
            text, found = with_mutants((self.root / file).read_text(encoding="utf-8"), mutants)
            write_changed(self.sources / file, text)
            places += [(file, *place) for place in found]
        write_changed(self.sources / LIBRARY, (self.root / LIBRARY).read_text() + SWITCH)
        self.invalid |= set(range(len(self.mutants))) - {place[3] for place in places}
        return places

    def compile(self, places):
        """Builds the tests; returns the numbers of mutants that do not compile."""
        command = ["cargo", "test", "--no-run", "--locked", "--message-format=json", "--tests"]
        environment = os.environ | {
            "CARGO_TARGET_DIR": str(self.target / "build"),
            "CARGO_INCREMENTAL": "1",
            "CARGO_PROFILE_DEV_DEBUG": "none",
            "RUSTFLAGS": "--cap-lints=allow",
        }
        build = subprocess.Popen(
            [*command, "-p", "zeusm", "-p", "zeusm-cpu"],
            cwd=self.sources,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        wrong, others, self.programs = set(), [], []
        for line in build.stdout:
            message = json.loads(line)
            if message["reason"] == "compiler-artifact" and message["profile"]["test"]:
                folder = os.path.dirname(message["manifest_path"])
                self.programs.append((message["executable"], folder))
            elif message["reason"] == "compiler-message" and message["message"]["level"] == "error":
                found = blamed(message["message"], places)
                wrong |= found
                others += [] if found else [message["message"]["rendered"]]
        if build.wait() and not wrong:
            raise SystemExit("\n".join(others))
        return wrong


def same(source, copy):
    return source.stat().st_mtime == copy.stat().st_mtime


def write_changed(path, text):
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def blamed(message, places):
    """The mutants of the lines where a message of the compiler is, or else of those that it mentions."""
    for primary in True, False:
        found = {
            number
            for span in message["spans"]
            for file, first, last, number in places
            if span["is_primary"] == primary
            and span["file_name"].endswith(file)
            and first <= span["line_start"] <= last
        }
        if found:
            return found
    return set()


def with_mutants(text, mutants):
    """The text of a file with these mutants, and the lines of each.

    A constant expression cannot choose, so those of `const fn` are not built; nor are bodies of which each has a type of its own."""
    lines = text.splitlines(keepends=True)
    starts = [0, *itertools.accumulate(map(len, lines))]

    def offset(place):
        return starts[place["line"] - 1] + place["column"] - 1

    by_body = {}
    for number, mutant in mutants:
        function = mutant["function"]
        start, end = offset(function["span"]["start"]), offset(function["span"]["end"])
        opening = body(text, start)
        if "const fn" in text[start:opening] or "const unsafe fn" in text[start:opening]:
            continue
        span = offset(mutant["span"]["start"]), offset(mutant["span"]["end"])
        by_body.setdefault((opening, end), []).append((number, span, mutant["replacement"]))
    return spliced(text, by_body)


def body(text, start):
    """Where the braces of a function open: the first that are in no parentheses, and in no comment before it."""
    depth = 0
    for token in re.compile(r"//.*|[(\[]|[)\]]|\{").finditer(text, start):
        if token[0] in "([":
            depth += 1
        elif token[0] in ")]":
            depth -= 1
        elif token[0] == "{" and depth == 0:
            return token.start()
    raise ValueError("a function without a body")


def spliced(text, by_body):
    """Replaces each body by a choice of its copies. A function in another one's body keeps its own mutants only."""
    bodies = sorted(by_body)
    outer = [
        it for it in bodies if not any(it[0] < other[0] and other[1] <= it[1] for other in bodies)
    ]
    parts, places, done, line = [], [], 0, 1

    def add(part):
        nonlocal line
        parts.append(part)
        line += part.count("\n")

    for opening, end in outer:
        add(text[done:opening] + "{")
        for number, span, replacement in by_body[opening, end]:
            first = line
            add(f"if ::zeusm_process::mutants::on({number}) ")
            add(text[opening : span[0]] + replacement + text[span[1] : end] + " else\n")
            places.append((first, line - 1, number))
        add(text[opening:end] + "}")
        done = end
    add(text[done:])
    return "".join(parts), places
