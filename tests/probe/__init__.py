"""metalprobe, against made-up machines and a loopback registry."""
