"""metalprobe: the agent that runs on a machine to report its hardware or to erase its drives.

Python standard library only, Python 3.9 or newer, so that it runs from any Linux image; imports nothing else of the
project. `cli` is the command line. `agent` repeats a report until the registry accepts it, `report` and `collectors`
gather it, and `erase` implements `metalprobe sanitize`. `bundle` packs everything into one file.
Start reading in `agent`.
"""
