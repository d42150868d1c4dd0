package main

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	now := time.UnixMilli(1769846400000).In(time.FixedZone("", -2*60*60)) // 06:00 there
	for in, want := range map[string]int64{
		"0":                             0,
		"1769846400000":                 1769846400000,
		"2026-01-31T08:00:00Z":          1769846400000,
		"2026-01-31T09:00:00.250+01:00": 1769846400250,
		"2026-01-31T06:00":              1769846400000,
		"2026-01-31T06:00:00":           1769846400000,
		"2026-01-31T06:00:00.250":       1769846400250,
		"2026-01-31 06:00":              1769846400000,
		"2026-01-31 06:00:01":           1769846401000,
		"2026-01-31":                    1769846400000 - 6*60*60_000,
		"90m":                           1769846400000 - 90*60_000,
		"1h30m":                         1769846400000 - 90*60_000,
		"7d":                            1769846400000 - 7*24*60*60_000,
		"0s":                            1769846400000,
	} {
		if got, err := parseTime(in, now); err != nil || got != want {
			t.Errorf("%s is %d (%v), want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "now", "2026-01-32", "2026-1-31", "2026-01-31T", "08:00", "1969-12-31", "-1", "-1h", "-1d", "d", "1.5d", "99999999d", "1969-12-31T23:59:59Z"} {
		if got, err := parseTime(in, now); err == nil {
			t.Errorf("%q is %d", in, got)
		}
	}
}

func TestParsePosition(t *testing.T) {
	now := time.UnixMilli(1769846400000).UTC()
	for in, want := range map[string]position{
		"beginning":            {at: atBeginning},
		"earliest":             {at: atBeginning},
		"end":                  {at: atEnd},
		"latest":               {at: atEnd},
		"0":                    {atOffset, 0},
		"1769846400000":        {atOffset, 1769846400000},
		"@1769846400000":       {atTime, 1769846400000},
		"2026-01-31T08:00:00Z": {atTime, 1769846400000},
		"2026-01-31T08:00":     {atTime, 1769846400000},
		"1h":                   {atTime, 1769846400000 - 60*60_000},
	} {
		if got, err := parsePosition("from", in, now); err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "-1", "@-1", "@", "start", "1 h"} {
		if got, err := parsePosition("from", in, now); err == nil {
			t.Errorf("%q is %v", in, got)
		}
	}
}
