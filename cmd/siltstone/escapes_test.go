package main

import "testing"

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{
		"":                "",
		":":               ":",
		`"':`:             `"':`,
		`\t`:              "\t",
		`a\tb\nc`:         "a\tb\nc",
		`\\`:              `\`,
		`\\t`:             `\t`,
		`\x00\xff`:        "\x00\xff",
		`\u00e4\101`:      "äA",
		"ä":               "ä",
		"\xff\x80" + `\t`: "\xff\x80\t",
	} {
		if got, err := unescape(in); err != nil || got != want {
			t.Errorf("%q is %q (%v), want %q", in, got, err, want)
		}
	}
	for _, in := range []string{`\`, `a\`, `\q`, `\x1`, `\'`, `\"`, `\u12`} {
		if got, err := unescape(in); err == nil {
			t.Errorf("%q is %q", in, got)
		}
	}
}
