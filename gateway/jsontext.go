package gateway

// encoding/json takes names in any case, the last of several of one name, and
// text that is no Unicode, which it mends. A record that is mended is another
// record. So bodies are taken apart here, without copies, once json.Valid has
// said that they are JSON; none of this checks the grammar again.

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// fieldError is what a JSON text says that its reader does not take: of a
// record, unless the reader says of what else.
type fieldError struct{ what string }

func fieldErrorf(format string, args ...any) error { return &fieldError{fmt.Sprintf(format, args...)} }

func (e *fieldError) Error() string { return e.what }
func (e *fieldError) Unwrap() error { return errInvalidRecord }

// checkJSON wants one JSON text in UTF-8.
func checkJSON(text []byte) error {
	if at := notUTF8(text); at >= 0 {
		return fmt.Errorf("%w: it is not UTF-8, at byte %d", errMalformed, at)
	}
	if json.Valid(text) {
		return nil
	}
	var nothing struct{}
	err := json.Unmarshal(text, &nothing)
	if at, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("%w: it is not JSON: %w, at byte %d", errMalformed, err, at.Offset)
	}
	return fmt.Errorf("%w: it is not JSON: %w", errMalformed, err)
}

// notUTF8 is where text stops being UTF-8, or -1.
func notUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for at := 0; ; {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// trim drops the space around a JSON text.
func trim(text []byte) []byte {
	for len(text) > 0 && isSpace(text[0]) {
		text = text[1:]
	}
	for len(text) > 0 && isSpace(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}

func isNull(text []byte) bool { return string(text) == "null" }

// stringEnd is where the string at text[0] ends.
func stringEnd(text []byte) int {
	for i := 1; ; i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
}

// valueEnd is where the value at text[0] ends.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			i += stringEnd(text[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth <= 0 {
				return i + 1 + min(depth, 0) // the end of what surrounds a number
			}
		case depth == 0 && (c == ',' || isSpace(c)):
			return i
		}
	}
	return len(text)
}

// elements are the values of an array.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for rest := array[1:]; ; {
			for isSpace(rest[0]) || rest[0] == ',' {
				rest = rest[1:]
			}
			if rest[0] == ']' {
				return
			}
			end := valueEnd(rest)
			if !yield(rest[:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// members calls member for each name and value of an object, each name once.
func members(object []byte, member func(name string, value []byte) error) error {
	if object[0] != '{' {
		return fieldErrorf("it is not an object")
	}
	var seen []string
	for rest := object[1:]; ; {
		for isSpace(rest[0]) || rest[0] == ',' {
			rest = rest[1:]
		}
		if rest[0] == '}' {
			return nil
		}
		end := stringEnd(rest)
		name, err := unquote(rest[:end])
		if err != nil {
			return err
		}
		if slices.Contains(seen, string(name)) {
			return fieldErrorf("%q is given twice", shortened(name))
		}
		seen = append(seen, string(name))
		for rest = rest[end:]; isSpace(rest[0]) || rest[0] == ':'; {
			rest = rest[1:]
		}
		end = valueEnd(rest)
		if err := member(string(name), rest[:end]); err != nil {
			return err
		}
		rest = rest[end:]
	}
}

// unknownMember refuses a name that means nothing, and says which do.
func unknownMember(name, whole, fields string) error {
	return fieldErrorf("%q is no field of %s, which has %s", shortened([]byte(name)), whole, fields)
}

// stringOf is what a JSON string says.
func stringOf(name string, value []byte) ([]byte, error) {
	if value[0] != '"' {
		return nil, fieldErrorf("%s is not a string", name)
	}
	s, err := unquote(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// integer is what a JSON number says that is one.
func integer(name string, value []byte, bits int) (int64, error) {
	n, err := strconv.ParseInt(string(value), 10, bits)
	if err != nil {
		return 0, fieldErrorf("%s is not an integer of %d bits", name, bits)
	}
	return n, nil
}

var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unquote is the text of a JSON string, in the string's own bytes where it has
// no escapes. Half of a surrogate pair is no text.
func unquote(quoted []byte) ([]byte, error) {
	s := quoted[1 : len(quoted)-1]
	if !slices.Contains(s, '\\') {
		return s[:len(s):len(s)], nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		if i++; s[i] != 'u' {
			out = append(out, unescaped[s[i]])
			continue
		}
		r := unicodeEscape(s[i-1:])
		i += 4
		if utf16.IsSurrogate(r) {
			if r = utf16.DecodeRune(r, unicodeEscape(s[i+1:])); r == utf8.RuneError {
				return nil, fieldErrorf("half of a surrogate pair is no text")
			}
			i += 6
		}
		out = utf8.AppendRune(out, r)
	}
	return out, nil
}

// unicodeEscape reads the escape at s[0], or is no rune where there is none.
func unicodeEscape(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends text, which is UTF-8, as a JSON string.
func appendQuoted(out, text []byte) []byte {
	out = append(out, '"')
	from := 0
	for i, c := range text {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		out = append(out, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, `\n`...)
		case '\r':
			out = append(out, `\r`...)
		case '\t':
			out = append(out, `\t`...)
		default:
			out = append(out, `\u00`...)
			out = append(out, hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(out, text[from:]...), '"')
}
