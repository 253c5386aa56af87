"""Storage: the objects in memory, the journal that makes writes durable, the event history, backups.

It imports machinery. Start reading in `store` (how a write becomes durable and visible), then `hub` (history and
watches) and `sqlite` (the journal).
"""
