"""metalprobe, with fake machines and a registry on loopback."""
