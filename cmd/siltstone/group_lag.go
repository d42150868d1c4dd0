package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/twmb/franz-go/pkg/kadm"
)

// partitionLag is how far behind a group is in one partition, at one time.
type partitionLag struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed *int64 `json:"committed"` // null: nothing is
	Start     int64  `json:"start"`
	End       int64  `json:"end"`
	Lag       int64  `json:"lag"`
	Member    string `json:"member,omitempty"`
	Client    string `json:"client,omitempty"`
	Host      string `json:"host,omitempty"`
	// Error says why there are no offsets: all of them are 0 then.
	Error string `json:"error,omitempty"`
}

// lagOf counts the records that are still to be read: from the committed
// offset, or from where the log starts, if that is later or nothing is committed.
func lagOf(start, end int64, committed *int64) int64 {
	from := start
	if committed != nil {
		from = max(from, *committed)
	}
	return max(0, end-from)
}

// partitionLags are a group's, sorted by topic and partition.
func partitionLags(all kadm.GroupLag) []partitionLag {
	lags := []partitionLag{}
	for _, l := range all.Sorted() {
		p := partitionLag{Topic: l.Topic, Partition: l.Partition}
		if m := l.Member; m != nil {
			p.Member, p.Client, p.Host = m.MemberID, m.ClientID, m.ClientHost
		}
		if l.Commit.At >= 0 {
			p.Committed = &l.Commit.At
		}
		switch {
		case l.Err != nil:
			p.Error = l.Err.Error()
		case l.Start.Err != nil:
			p.Error = l.Start.Err.Error()
		default:
			p.Start, p.End = l.Start.Offset, l.End.Offset
			p.Lag = lagOf(p.Start, p.End, p.Committed)
		}
		lags = append(lags, p)
	}
	return lags
}

// pace is how fast what a group reads is written and read, in records, and what
// becomes of its lag if both go on.
type pace struct {
	WrittenPerSecond float64 `json:"written_per_second"`
	ReadPerSecond    float64 `json:"read_per_second"`
	Outlook          outlook `json:"outlook"`
	// DrainsInSeconds is lag / (read - written), if that drains it.
	DrainsInSeconds *float64 `json:"drains_in_seconds"`
}

// outlook of a lag.
type outlook string

const (
	caughtUp outlook = "caught up" // there is none
	drains   outlook = "drains"    // read is above written
	grows    outlook = "grows"     // written is above read
	stays    outlook = "stays"     // both are the same
)

// topicLag is the lag in a topic, or in all.
type topicLag struct {
	Topic string `json:"topic,omitempty"`
	Lag   int64  `json:"lag"`
	Pace  *pace  `json:"pace"` // null: not sampled
}

// newPace is the arithmetic: what was written and read within some time.
func newPace(lag, written, read int64, took time.Duration) *pace {
	p := &pace{
		WrittenPerSecond: float64(written) / took.Seconds(),
		ReadPerSecond:    float64(read) / took.Seconds(),
	}
	switch {
	case lag == 0:
		p.Outlook = caughtUp
	case read > written:
		p.Outlook = drains
		in := float64(lag) / (p.ReadPerSecond - p.WrittenPerSecond)
		p.DrainsInSeconds = &in
	case read < written:
		p.Outlook = grows
	default:
		p.Outlook = stays
	}
	return p
}

func (p *pace) String() string {
	switch p.Outlook {
	case drains:
		return "drains in " + roughly(*p.DrainsInSeconds)
	case grows:
		return "grows by " + rate(p.WrittenPerSecond-p.ReadPerSecond) + "/s"
	default:
		return string(p.Outlook)
	}
}

// topicLags adds up partitions by topic, and all of them. Before is an earlier
// sample, took the time between the two; no time: there was none. What is
// written and read counts for the partitions that both have, and what is read
// for those of them in which both have a committed offset.
func topicLags(before, now []partitionLag, took time.Duration) (topics []topicLag, total topicLag) {
	var lag, written, read int64
	for len(now) > 0 {
		n := slices.IndexFunc(now, func(p partitionLag) bool { return p.Topic != now[0].Topic })
		if n < 0 {
			n = len(now)
		}
		t := topicLag{Topic: now[0].Topic}
		var w, r int64
		for _, p := range now[:n] {
			t.Lag += p.Lag
			pw, pr := moved(before, p)
			w, r = w+pw, r+pr
		}
		if took > 0 {
			t.Pace = newPace(t.Lag, w, r, took)
		}
		topics = append(topics, t)
		lag, written, read = lag+t.Lag, written+w, read+r
		now = now[n:]
	}
	total.Lag = lag
	if took > 0 {
		total.Pace = newPace(lag, written, read, took)
	}
	return topics, total
}

// moved is what was written to and read from a partition since an earlier
// sample, which is sorted as partitionLags does.
func moved(before []partitionLag, now partitionLag) (written, read int64) {
	i, found := slices.BinarySearchFunc(before, now, func(a, b partitionLag) int {
		if a.Topic != b.Topic {
			return strings.Compare(a.Topic, b.Topic)
		}
		return int(a.Partition) - int(b.Partition)
	})
	if !found || before[i].Error != "" || now.Error != "" {
		return 0, 0
	}
	if before[i].Committed != nil && now.Committed != nil {
		read = *now.Committed - *before[i].Committed
	}
	return now.End - before[i].End, read
}

// rate prints records per second, with a tenth where that matters.
func rate(perSecond float64) string {
	if perSecond > -10 && perSecond < 10 && perSecond != 0 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return humanize.Comma(int64(perSecond))
}

// roughly prints a time as closely as a sample of seconds can tell it.
func roughly(seconds float64) string {
	const day = 24 * 60 * 60
	switch {
	case seconds < 1:
		return "less than 1s"
	case seconds < 2*day:
		return (time.Duration(seconds) * time.Second).String()
	case seconds < 1000*day:
		return plural(int64(seconds/day), "day")
	}
	return "more than 1,000 days"
}
