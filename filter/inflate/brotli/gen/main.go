// SPDX-License-Identifier: Apache-2.0

// Gen writes dictionary.bin of package brotli: the dictionary and the transforms of RFC 7932, as the Go module
// github.com/andybalholm/brotli of the version in go.mod has them. The output depends on nothing else.
package main

import (
	"bytes"
	"compress/flate"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: gen OUT")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(out string) error {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/andybalholm/brotli").Output()
	if err != nil {
		return err
	}
	values := map[string][]byte{}
	for _, name := range []string{"dictionary.go", "transform.go"} {
		if err := read(filepath.Join(strings.TrimSpace(string(dir)), name), values); err != nil {
			return err
		}
	}
	plain, err := join(values["kBrotliDictionaryData"], values["kPrefixSuffix"], values["kTransformsData"])
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestCompression)
	_, _ = w.Write(plain)
	_ = w.Close()
	return os.WriteFile(out, packed.Bytes(), 0o644)
}

// join puts the transforms behind the words. A prefix or suffix is a number among the texts, each with its length before it.
func join(words, texts, transforms []byte) ([]byte, error) {
	if len(words) != 122784 || len(transforms) != 3*121 {
		return nil, errors.New("the module is not as it was")
	}
	var list [][]byte
	for len(texts) > 0 && len(list) < 50 {
		n := 1 + int(texts[0])
		list, texts = append(list, texts[:n]), texts[n:]
	}
	for i := 0; i < len(transforms); i += 3 {
		words = append(append(words, list[transforms[i]]...), transforms[i+1])
		words = append(words, list[transforms[i+2]]...)
	}
	return words, nil
}

// read finds the strings and lists of bytes that a file declares.
func read(file string, values map[string][]byte) error {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		return err
	}
	named := map[string]byte{}
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if b := bytesOf(spec.Values[0], named); b != nil {
				values[spec.Names[0].Name] = b
			}
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.INT {
				n, _ := strconv.ParseUint(lit.Value, 0, 8)
				named[spec.Names[0].Name] = byte(n)
			}
		}
		return true
	})
	return nil
}

func bytesOf(e ast.Expr, named map[string]byte) (b []byte) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			s, _ := strconv.Unquote(e.Value)
			return []byte(s)
		}
	case *ast.BinaryExpr:
		return append(bytesOf(e.X, named), bytesOf(e.Y, named)...)
	case *ast.CompositeLit:
		for _, v := range e.Elts {
			switch v := v.(type) {
			case *ast.BasicLit:
				n, _ := strconv.ParseUint(v.Value, 0, 8)
				b = append(b, byte(n))
			case *ast.Ident:
				b = append(b, named[v.Name])
			}
		}
	}
	return b
}
