// Not a part of the binding's module: built from Debian's golang-github-jackc-pgx-v4-dev, by GOPATH.
module pgxtest

go 1.19
