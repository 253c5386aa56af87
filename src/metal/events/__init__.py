"""What BMCs send to us: events, which are never believed and only cause a look at the machines."""
