package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestProduceStall: produce speaks once, when nothing is acknowledged for a
// while, and says why if it has heard.
func TestProduceStall(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(p *producer)
		want []string // when, and why
	}{
		{"nothing to send", func(*producer) { time.Sleep(time.Minute) }, nil},
		{"all is acknowledged", func(p *producer) {
			for range 60 {
				p.sent.Add(2)
				time.Sleep(time.Second)
				p.acked.Add(2)
			}
		}, nil},
		{"slow, but it goes on", func(p *producer) {
			p.sent.Add(60)
			for range 30 {
				time.Sleep(2 * time.Second)
				p.acked.Add(1)
			}
		}, nil},
		{"refused", func(p *producer) {
			p.sent.Add(1)
			time.Sleep(1500 * time.Millisecond)
			p.stall.heard.Log(kgo.LogLevelDebug, "produced", "to", "t[0{retrying@-1,1(no room)}]")
			time.Sleep(time.Minute)
		}, []string{"3s no room"}},
		{"refused and taken", func(p *producer) {
			p.sent.Add(1)
			time.Sleep(1500 * time.Millisecond)
			p.stall.heard.Log(kgo.LogLevelDebug, "produced", "to", "t[0{retrying@-1,1(no room)}]")
			p.acked.Add(1)
			time.Sleep(time.Minute)
		}, nil},
		{"no answer to the second", func(p *producer) {
			p.sent.Add(2)
			time.Sleep(2500 * time.Millisecond)
			p.acked.Add(1)
			time.Sleep(time.Minute)
		}, []string{"9s "}},
		{"no answer", func(p *producer) {
			p.sent.Add(1)
			time.Sleep(time.Minute)
		}, []string{"6s "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p producer
				var said []string
				began := time.Now()
				p.stall.say = func(why string) { said = append(said, fmt.Sprint(time.Since(began), " ", why)) }
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					p.watch(ctx)
				}()
				tt.do(&p)
				cancel()
				<-done
				if !slices.Equal(said, tt.want) {
					t.Errorf("said %q, want %q", said, tt.want)
				}
			})
		})
	}
}

func TestHearsay(t *testing.T) {
	var h hearsay
	if h.note(errors.New("early")); h.last() != "" {
		t.Errorf("it has heard %q before it listens", h.last())
	}
	h.listen(true)
	for _, tt := range []struct {
		logged []any
		want   string
	}{
		{[]any{"err", errors.New("refused"), "debug"}, ""},
		{[]any{"broker", "1", "err", nil}, ""},
		{[]any{"err", fmt.Errorf("dial: %w", context.Canceled)}, ""},
		{[]any{"to", "t[0{5=>6}]", "debug"}, ""},
		{[]any{"broker", "1", "err", errors.New("refused")}, "refused"},
		{[]any{"to", fmt.Sprintf("t[0{retrying@-1,12(%s)}, 1{5=>6}]", kerr.KafkaStorageError), "debug"}, kerr.KafkaStorageError.Error()},
		{[]any{"to", "t[0{5=>6}]"}, kerr.KafkaStorageError.Error()},
	} {
		level := kgo.LogLevelInfo
		if tt.logged[len(tt.logged)-1] == "debug" {
			level = kgo.LogLevelDebug
		}
		h.Log(level, "", tt.logged...)
		if got := h.last(); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.logged, got, tt.want)
		}
	}
	if h.listen(false); h.last() != "" || h.Level() != kgo.LogLevelNone {
		t.Errorf("it still says %q", h.last())
	}
}

func TestSayOn(t *testing.T) {
	var out strings.Builder
	say := sayOn(&out, "the server to take records", "it does not answer")
	say("no room")
	say("")
	if want := "siltstone: waiting for the server to take records, until Ctrl-C: no room\n" +
		"siltstone: waiting for the server to take records, until Ctrl-C: it does not answer\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
