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

const (
	timeSyntax     = "2026-01-31T08:00:00Z, 2026-01-31T08:00 or 2026-01-31 as clocks are here, 90m or 7d ago"
	positionSyntax = "an offset, a time like " + timeSyntax + ", or @ and milliseconds since 1970"
)

// parsePosition reads the value of a flag. Numbers are offsets, so times in
// milliseconds are marked.
func parsePosition(flag, s string, now time.Time) (position, error) {
	switch s {
	case "beginning", "earliest":
		return position{at: atBeginning}, nil
	case "end", "latest":
		return position{at: atEnd}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
		return position{atOffset, n}, nil
	}
	if millis, err := parseTime(strings.TrimPrefix(s, "@"), now); err == nil {
		return position{atTime, millis}, nil
	}
	return position{}, usagef("--%s is beginning (or earliest), end (or latest), %s; not %q", flag, positionSyntax, s)
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

// localTimes are times as clocks show them where now is. Fractions of a second
// may follow.
var localTimes = []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", time.DateTime}

// parseTime reads a time as milliseconds since 1970: it is RFC 3339, a local
// one, how long ago it is, or these milliseconds.
func parseTime(s string, now time.Time) (int64, error) {
	millis, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t, wrong := parseDate(s, now.Location())
		if ago, err := parseAge(s); err == nil {
			t, wrong = now.Add(-ago), nil
		}
		millis, err = t.UnixMilli(), wrong
	}
	if err != nil || millis < 0 {
		return 0, errTime
	}
	return millis, nil
}

func parseDate(s string, local *time.Location) (t time.Time, err error) {
	if t, err = time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	for _, layout := range localTimes {
		if t, err = time.ParseInLocation(layout, s, local); err == nil {
			return t, nil
		}
	}
	return t, err
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
