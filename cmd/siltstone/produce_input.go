package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recordRules say how a line or a file becomes a record.
type recordRules struct {
	partition      int32 // -1: any
	separator      string
	keyText        string
	key            []byte // of every record; nil: none
	headers        []kgo.RecordHeader
	json           bool
	keepPartitions bool
}

// check refuses wrong flags.
func (r *recordRules) check(headers []string, files, keyed bool) error {
	for _, h := range headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok {
			return usagef("--header %s is not name=value", h)
		}
		r.headers = append(r.headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	if keyed {
		r.key = []byte(r.keyText)
	}
	separator, err := unescape(r.separator)
	if err != nil {
		return usagef("--key-separator %s: %w", r.separator, err)
	}
	r.separator = separator
	switch {
	case r.partition < -1:
		return usagef("--partition is 0 or above, or -1, not %d", r.partition)
	case r.json && (files || r.separator != "" || keyed):
		return usagef("--json reads keys and values from standard input: --file, --key and --key-separator are not for it")
	case files && r.separator != "":
		return usagef("a file is a record, whole: --key gives it a key, --key-separator is for lines")
	case keyed && r.separator != "":
		return usagef("give --key or --key-separator, not both")
	case r.keepPartitions && (!r.json || r.partition >= 0):
		return usagef("--keep-partitions goes with --json, and without --partition")
	}
	return nil
}

// of makes a record of bytes that it keeps.
func (r *recordRules) of(b []byte) (*kgo.Record, error) {
	rec := &kgo.Record{Key: r.key, Value: b}
	if r.json {
		var err error
		if rec, err = parseJSONRecord(b); err != nil {
			return nil, err
		}
		if r.keepPartitions && rec.Partition < 0 {
			return nil, errors.New("it names no partition")
		}
	} else if r.separator != "" {
		key, value, ok := bytes.Cut(b, []byte(r.separator))
		if !ok {
			return nil, fmt.Errorf("it has no %q, which parts key and value", r.separator)
		}
		rec.Key, rec.Value = key, value
	}
	if rec.Headers == nil {
		rec.Headers = r.headers // shared by all
	} else {
		rec.Headers = append(rec.Headers, r.headers...)
	}
	if !r.keepPartitions {
		rec.Partition = max(0, r.partition)
	}
	return rec, nil
}

// place is where a record was read.
type place struct {
	file string // empty: standard input
	line int
}

func (p place) String() string {
	if p.file != "" {
		return p.file
	}
	return fmt.Sprintf("line %d", p.line)
}

type placed struct {
	record *kgo.Record
	place  place
}

// input is what records are read from: files, or else standard input.
type input struct {
	rules      recordRules
	limitBytes int // of a record
	stdin      io.Reader
	files      []string

	done atomic.Int64 // bytes read
}

// size is how many bytes there are; 0: who knows.
func (in *input) size() int64 {
	if f, ok := in.stdin.(*os.File); ok && len(in.files) == 0 {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
	}
	return sizeOf(in.files)
}

// read hands records on until there are no more. Its errors are errInput.
func (in *input) read(ctx context.Context, to chan<- placed) error {
	if len(in.files) == 0 {
		if err := in.readLines(ctx, to); err != nil {
			return fmt.Errorf("%w: %w", errInput, err)
		}
		return nil
	}
	for _, name := range in.files {
		b, err := in.readFile(name)
		if err != nil {
			return fmt.Errorf("%w: %w", errInput, err)
		}
		rec, err := in.rules.of(b)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errInput, name, err)
		}
		if !hand(ctx, to, placed{rec, place{file: name}}) {
			return nil
		}
	}
	return nil
}

func (in *input) readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(in.limitBytes)+1))
	if err == nil && len(b) > in.limitBytes {
		err = fmt.Errorf("%s is longer than the %d bytes that the topic's max.message.bytes allows", name, in.limitBytes)
	}
	in.done.Add(int64(len(b)))
	return b, err
}

// readLines reads one line after the other, without its end.
func (in *input) readLines(ctx context.Context, to chan<- placed) error {
	limitBytes := in.limitBytes
	if in.rules.json {
		limitBytes = 6*limitBytes + 64<<10 // as long as escapes can make it; the client looks at the record
	}
	r := bufio.NewReaderSize(in.stdin, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(r, limitBytes)
		if errors.Is(err, errTooLong) {
			return fmt.Errorf("line %d is longer than the %d bytes that the topic's max.message.bytes allows", n, limitBytes)
		} else if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		in.done.Add(int64(len(line)))
		if text := bytes.TrimSuffix(line, []byte("\n")); len(line) > 0 && (!in.rules.json || len(bytes.TrimSpace(text)) > 0) {
			rec, wrong := in.rules.of(text)
			if wrong != nil {
				return fmt.Errorf("line %d: %w", n, wrong)
			}
			if !hand(ctx, to, placed{rec, place{line: n}}) {
				return nil
			}
		}
		if err != nil {
			return nil //nolint:nilerr // the end
		}
	}
}

var errTooLong = errors.New("too long")

// readLine returns a line of its own, with its end; the last one with io.EOF.
func readLine(r *bufio.Reader, limitBytes int) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > limitBytes+1 {
			return nil, errTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func hand(ctx context.Context, to chan<- placed, p placed) bool {
	select {
	case to <- p:
		return true
	case <-ctx.Done():
		return false
	}
}
