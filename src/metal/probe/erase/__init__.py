"""`metalprobe sanitize`: erases every drive, verifies by reading back, and reports the result.

Start with `session` (one run), then `worker` (one unit of drives), `plan` (which methods in which order) and `samples`
(the verification). `nvme`, `ata`, `scsi` and `software` implement the methods.
"""
