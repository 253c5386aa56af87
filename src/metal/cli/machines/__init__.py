"""What people do with servers: claim, release, cordon, park, maintain, switch."""
