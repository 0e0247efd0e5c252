"""Where the agent's library is: the C part of Lineheat, loaded into Lua targets by absolute path."""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from lineheat.model.errors import LineheatError

LIBRARY_NAME = "liblineheat.so"


def agent_library() -> Path:
    """Absolute path of the library, beside the package or where the installed package has put it."""
    for place in _places():
        if place.is_file():
            return place.absolute()
    raise LineheatError(
        "agent-missing",
        f"the agent's library {LIBRARY_NAME} is not built, so no Lua program can be recorded;"
        " install Lineheat where a C compiler is (pip install . in its folder), or from a wheel",
    )


def _places() -> list[Path]:
    """An editable install has its Python files in one place and its library in another."""
    package = Path(__file__).parents[1]
    places = [package / LIBRARY_NAME]
    try:
        installed = distribution(package.name)
    except PackageNotFoundError:
        return places
    return [*places, Path(str(installed.locate_file(f"{package.name}/{LIBRARY_NAME}")))]
