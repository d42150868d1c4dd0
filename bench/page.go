package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
)

// The page keeps what people wrote around the figures of each part.
func marks(part string) (begin, end string) {
	return fmt.Sprintf("<!-- figures of %s: written by make bench -->\n", part), fmt.Sprintf("<!-- end of figures of %s -->\n", part)
}

// aroundFigures is what stands before and after a part's figures on a page.
func aroundFigures(path, part string) (before, after []byte, err error) {
	page, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	begin, end := marks(part)
	before, rest, found := bytes.Cut(page, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		return nil, nil, fmt.Errorf("%s has no place for figures, between %q and %q", path, begin, end)
	}
	return before, after, nil
}

// writeInto puts figures between the marks of a page.
func writeInto(path, part, figures string) error {
	before, after, err := aroundFigures(path, part)
	if err != nil {
		return err
	}
	begin, end := marks(part)
	page := slices.Concat(before, []byte(begin+"\n"+figures+"\n"+end), after)
	return os.WriteFile(path, page, 0o644)
}
