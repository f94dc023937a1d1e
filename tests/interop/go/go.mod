// The newest version that Go can require: the later tags are v2.x, and their module path has no /v2.
module interop

go 1.23

require github.com/mtingers/dflockd v1.16.1
