module github.com/mtingers/dflockd

go 1.23
