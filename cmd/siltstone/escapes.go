package main

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// unescape reads \t, \n, \\, \xNN, \u00e4 and the like as Go does, and takes
// everything else as it is.
func unescape(s string) (string, error) {
	var b []byte
	for s != "" {
		plain, rest, escape := strings.Cut(s, `\`)
		b = append(b, plain...)
		if !escape {
			break
		}
		char, multibyte, rest, err := strconv.UnquoteChar(`\`+rest, 0)
		if err != nil {
			return "", errors.New(`no escape follows a backslash: \t, \n, \xNN, or \\ for itself`)
		}
		if multibyte {
			b = utf8.AppendRune(b, char)
		} else {
			b = append(b, byte(char))
		}
		s = rest
	}
	return string(b), nil
}
