"""`python -m pageslots.cli` is the same as `pageslots`."""

import sys

from pageslots.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
