module lockd.internal/lockd

go 1.21
