"""What holds for every test."""

import asyncio

# On Python 3.11 asking for "the current loop" before one was ever set makes a loop that nobody closes; pytest-asyncio
# asks, and the ResourceWarning is an error here. Saying "there is none" first avoids it.
asyncio.set_event_loop(None)
