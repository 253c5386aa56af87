"""Starts metalprobe: `python3 -m metal.probe`, or the archive that `metal.probe.bundle` makes."""

import sys

from metal.probe.cli import main

if __name__ == "__main__":
    sys.exit(main())
