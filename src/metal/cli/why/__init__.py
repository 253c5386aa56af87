"""Why a server or claim is where it is, in sentences."""
