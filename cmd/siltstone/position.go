package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// position is a place in every partition of a topic, as flags name it.
type position struct {
	at placeKind
	n  int64 // the offset, or milliseconds since 1970
}

type placeKind int

const (
	nowhere placeKind = iota
	atBeginning
	atEnd
	atOffset
	atTime
)

const positionSyntax = "an offset, a time like 2026-01-31T08:00:00Z, how long ago like 90m or 7d, or @ and milliseconds since 1970"

// parsePosition reads the value of a flag. Numbers are offsets, so times in
// milliseconds are marked.
func parsePosition(flag, s string, now time.Time) (position, error) {
	switch s {
	case "beginning":
		return position{at: atBeginning}, nil
	case "end":
		return position{at: atEnd}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
		return position{atOffset, n}, nil
	}
	if millis, err := parseTime(strings.TrimPrefix(s, "@"), now); err == nil {
		return position{atTime, millis}, nil
	}
	return position{}, usagef("--%s is beginning, end, %s; not %q", flag, positionSyntax, s)
}

// within is where a position is in a log; timed is where its time is.
func (p position) within(start, end, timed int64) int64 {
	switch p.at {
	case atBeginning:
		return start
	case atOffset:
		return min(max(start, p.n), end)
	case atTime:
		return min(max(start, timed), end)
	default:
		return end
	}
}

var errTime = errors.New("not a time")

// parseTime reads a time as milliseconds since 1970: it is RFC 3339, how long
// ago it is, or these milliseconds.
func parseTime(s string, now time.Time) (int64, error) {
	millis, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		if t, wrong := time.Parse(time.RFC3339, s); wrong == nil {
			millis, err = t.UnixMilli(), nil
		} else if ago, wrong := parseAge(s); wrong == nil {
			millis, err = now.Add(-ago).UnixMilli(), nil
		}
	}
	if err != nil || millis < 0 {
		return 0, errTime
	}
	return millis, nil
}

// parseAge is time.ParseDuration, with whole days too.
func parseAge(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(s)
	if err == nil && d < 0 {
		err = errTime
	}
	return d, err
}
