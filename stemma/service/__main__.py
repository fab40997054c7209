"""`python -m stemma.service`: the query service with the settings of the environment."""

import sys

from stemma.errors import StemmaError
from stemma.logs import configure_logging
from stemma.service.serve import serve
from stemma.settings import load_settings


def main() -> int:
    """The exit code of `serve`; 2 when the settings do not validate."""
    configure_logging()
    try:
        settings = load_settings()
    except StemmaError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return serve(settings)


if __name__ == "__main__":
    sys.exit(main())
