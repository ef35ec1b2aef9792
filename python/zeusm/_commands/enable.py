"""`zeusm enable`: every interpreter of an environment imports zeusm before it looks for SYCL devices."""

import site
import sysconfig
from argparse import Namespace
from pathlib import Path

import zeusm_start

from zeusm._commands.run import failure

NAME = "enable"
HELP = (
    "Let every Python program of this environment find zeusm's device, also those that do not import zeusm, until "
    f"`zeusm disable`; {zeusm_start.VARIABLE}=0 disables it for a process and its children."
)


def call(_options: Namespace) -> int:
    path = folder() / zeusm_start.FILE
    draft = path.with_name(path.name + ".new")  # Python ignores it until it has its name.
    try:
        draft.write_text(f"{zeusm_start.LINE}\n")
        draft.replace(path)
    except OSError as error:
        return failure(NAME, f"{path}: {error.strerror}", 1)
    print(f"zeusm is enabled by {path}")
    return 0


def folder() -> Path:
    """Return the site-packages of the environment, or the user's if zeusm is installed there."""
    installed = Path(zeusm_start.__file__).resolve().parents[1]
    if site.ENABLE_USER_SITE and installed == Path(site.getusersitepackages()).resolve():
        return installed
    return Path(sysconfig.get_path("purelib"))


def folders() -> list[Path]:
    """Return the folders whose path files this interpreter reads at its start."""
    names = [sysconfig.get_path("purelib"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        names.append(site.getusersitepackages())
    return list(dict.fromkeys(Path(name).resolve() for name in names))


def files() -> list[Path]:
    """Return the path files that enable zeusm: one, or none, or one for the user beside that of the environment."""
    paths = [folder / zeusm_start.FILE for folder in folders()]
    return [path for path in paths if path.is_file()]
