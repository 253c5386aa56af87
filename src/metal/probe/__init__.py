"""metalprobe: reports what the machine it runs on is made of. Standard library only, Python 3.9+."""
