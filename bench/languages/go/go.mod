module bench

go 1.19

require (
	github.com/lib/pq v1.10.7
	holdfast v0.0.0
)

replace holdfast => ../../../bindings/go

// Debian's golang-github-lib-pq-dev.
replace github.com/lib/pq => /usr/share/gocode/src/github.com/lib/pq
