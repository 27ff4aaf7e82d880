module github.com/weirproxy/weir

go 1.26.2
