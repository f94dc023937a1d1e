module lockd.internal/bench

go 1.21

require lockd.internal/lockd v0.0.0

replace lockd.internal/lockd => ../../../clients/go
