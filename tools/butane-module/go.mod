module metal/butane
go 1.24
require github.com/coreos/butane v0.24.0
